package queue

import (
	"errors"
	"os"

	"github.com/localqueue/localqueue/queue/internal/ofd"
	"golang.org/x/sys/unix"
)

func takeLock(f *os.File, alone bool) error {
	kind := int16(unix.F_RDLCK)
	if alone {
		kind = unix.F_WRLCK
	}
	_, err := ofd.Lock(f.Fd(), unix.F_OFD_SETLK, kind, 0, 1)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errTaken
	}
	return err
}

func dropLock(f *os.File) { _, _ = ofd.Lock(f.Fd(), unix.F_OFD_SETLK, unix.F_UNLCK, 0, 1) }
