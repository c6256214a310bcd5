// Package ofd takes open-file-description locks on bytes of a file (fcntl(2), F_OFD_SETLK). They end with the descriptor,
// and so with the process, and a test for them finds those of other descriptors only.
package ofd

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Lock runs one of F_OFD_SETLK, F_OFD_SETLKW and F_OFD_GETLK on n bytes, and returns what fcntl made of the lock.
func Lock(fd uintptr, how int, kind int16, start, n int64) (unix.Flock_t, error) {
	lk := unix.Flock_t{Type: kind, Start: start, Len: n}
	for {
		if err := unix.FcntlFlock(fd, how, &lk); !errors.Is(err, unix.EINTR) {
			return lk, err
		}
	}
}
