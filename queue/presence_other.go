//go:build !linux

package queue

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func takeLock(f *os.File, alone bool) error {
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errTaken
	}
	return err
}

func dropLock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
