package doorbell

import (
	"errors"
	"io/fs"
	"os"

	"github.com/localqueue/localqueue/queue/internal/ofd"
	"golang.org/x/sys/unix"
)

const (
	slots    = 256
	slotByte = 1 << 40 // + slot: that slot is taken
	keyByte  = 1 << 41 // + key * slots + slot: somebody of that slot sleeps on the key
)

// board is where the locks are. They are open-file-description locks (fcntl(2)): they end with the process, and a test for
// them finds those of other processes only.
type board struct {
	f  *os.File
	fd uintptr
}

func openBoard(path string) (*board, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &board{f, f.Fd()}, nil
}

func (d *board) close() error { return d.f.Close() }

func (d *board) lock(how int, kind int16, start, n int64) (unix.Flock_t, error) {
	return ofd.Lock(d.fd, how, kind, start, n)
}

func (d *board) take(slot int) bool {
	_, err := d.lock(unix.F_OFD_SETLK, unix.F_WRLCK, slotByte+int64(slot), 1)
	return err == nil
}

func (d *board) yield(slot int) {
	_, _ = d.lock(unix.F_OFD_SETLK, unix.F_UNLCK, slotByte+int64(slot), 1)
}

func at(key Key, slot int) int64 { return keyByte + int64(key)*slots + int64(slot) }

func (d *board) announce(key Key, slot int) error {
	_, err := d.lock(unix.F_OFD_SETLK, unix.F_WRLCK, at(key, slot), 1)
	return err
}

func (d *board) retract(key Key, slot int) {
	_, _ = d.lock(unix.F_OFD_SETLK, unix.F_UNLCK, at(key, slot), 1)
}

// sleepers finds up to n slots of other processes with somebody asleep on a key, from a slot on and around.
func (d *board) sleepers(key Key, from, n int) []int {
	if len(d.between(key, nil, 0, slots, 1)) == 0 { // as a rule
		return nil
	}
	found := d.between(key, nil, from, slots, n)
	return d.between(key, found, 0, min(from, slots), n)
}

// between adds what is in [a, b). The kernel names any lock of the range, not the first.
func (d *board) between(key Key, found []int, a, b, n int) []int {
	if a >= b || len(found) >= n {
		return found
	}
	lk, err := d.lock(unix.F_OFD_GETLK, unix.F_WRLCK, at(key, a), int64(b-a))
	if err != nil || lk.Type == unix.F_UNLCK {
		return found
	}
	slot := min(max(int(lk.Start-at(key, 0)), a), b-1)
	found = append(found, slot)
	return d.between(key, d.between(key, found, a, slot, n), slot+1, b, n)
}

// openFIFO opens a FIFO for reading, or makes it, for the board's owner. Opened for writing too, it never reads an end when a
// writer leaves.
func (d *board) openFIFO(path string) (*os.File, error) {
	made := unix.Mkfifo(path, 0o600)
	if made != nil && !errors.Is(made, unix.EEXIST) {
		return nil, &fs.PathError{Op: "mkfifo", Path: path, Err: made}
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: path, Err: fs.ErrExist}, f.Close())
	}
	if made == nil {
		if err := d.giveToOwner(f); err != nil {
			return nil, errors.Join(err, os.Remove(path), f.Close())
		}
	}
	return f, nil
}

// giveToOwner gives a FIFO that root has made to the owner of the board, who must be able to ring.
func (d *board) giveToOwner(fifo *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(d.fd), &st); err != nil {
		return err
	}
	if st.Uid == 0 && st.Gid == 0 {
		return nil
	}
	return fifo.Chown(int(st.Uid), int(st.Gid))
}

// send rings at a slot. False: nobody is there any more. A full pipe has been rung often enough.
func (b *Bell) send(slot int, n News) bool {
	fd, err := unix.Open(b.fifoPath(slot), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return false // somebody's own file of that name
	}
	_, err = unix.Write(fd, n.encode())
	return err == nil || errors.Is(err, unix.EAGAIN)
}
