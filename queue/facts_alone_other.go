//go:build !linux

package queue

import (
	"errors"
	"os"
)

// lockedAlone tells whether a lock of takeLock keeps all others out. There is no way to ask but to try.
func lockedAlone(f *os.File) bool {
	err := takeLock(f, false)
	if err == nil {
		dropLock(f)
	}
	return errors.Is(err, errTaken)
}
