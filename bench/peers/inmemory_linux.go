package main

import "golang.org/x/sys/unix"

// inMemory tells whether a directory is on a file system without a disk.
func inMemory(dir string) bool {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return false
	}
	return fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.RAMFS_MAGIC
}
