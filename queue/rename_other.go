//go:build !linux

package queue

import "golang.org/x/sys/unix"

func renameNew(from, to string) error { return renameAbsent(from, to) }

func exchange(_, _ string) error { return unix.ENOSYS }
