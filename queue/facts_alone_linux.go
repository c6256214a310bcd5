package queue

import (
	"os"

	"github.com/localqueue/localqueue/queue/internal/ofd"
	"golang.org/x/sys/unix"
)

// lockedAlone tells whether a lock of takeLock keeps all others out. It only asks: a lock taken for the look, however short,
// would turn a restore away.
func lockedAlone(f *os.File) bool {
	lock, err := ofd.Lock(f.Fd(), unix.F_OFD_GETLK, unix.F_RDLCK, 0, 1)
	return err == nil && lock.Type != unix.F_UNLCK
}
