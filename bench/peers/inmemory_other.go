//go:build !linux

package main

// inMemory isn't known here: it is the user's to choose a directory on a disk.
func inMemory(string) bool { return false }
