//go:build unix

// Package bench measures localqueue where it is meant to be used: several processes on one file. [Run] starts this program
// again as producers, consumers and receivers, lets them begin at one instant, merges what each has measured, and then
// checks that no job was lost and none was settled twice. A figure whose accounting fails is worth nothing, so the check
// is part of every run.
//
// The program that calls Run has to call [Child] when it is started as one of those processes; see [Config.Command].
package bench
