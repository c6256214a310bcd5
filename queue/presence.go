package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Every Store holds a shared lock on a file in its directory for as long as it is open. SQLite's own locks don't tell who is
// there: an idle connection may hold none that BEGIN EXCLUSIVE would meet. A restore that puts another directory in this
// one's place holds the lock alone.

const openFile = "localqueue.open"

// held is a file that is locked by this process. The lock ends with the process at the latest.
type held struct {
	path string
	f    *os.File
	made bool // there was no such file before
}

var errTaken = errors.New("another process has locked it")

// hold locks a file, which it makes if need be, or returns errTaken at once. The lock is on the file that has the name then:
// the directory may be exchanged for another one meanwhile.
func hold(path string, alone bool) (*held, error) {
	for range 100 {
		_, missing := os.Lstat(path)
		f, err := openPlain(path)
		if err != nil {
			return nil, err
		}
		h, err := lockOpen(path, f, alone)
		if err == nil {
			h.made = errors.Is(missing, os.ErrNotExist)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return h, err
		}
	}
	return nil, fmt.Errorf("%w: %s is removed as often as it is made", ErrBusy, path)
}

// lockOpen locks an open file, or closes it: with errTaken, or ErrNotExist if it hasn't that path any more.
func lockOpen(path string, f *os.File, alone bool) (*held, error) {
	if err := takeLock(f, alone); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	h := &held{path: path, f: f}
	if !h.current() {
		h.release()
		return nil, os.ErrNotExist
	}
	return h, nil
}

// current tells whether the locked file is still the one at its path.
func (h *held) current() bool {
	ours, err := h.f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(h.path)
	return err == nil && os.SameFile(ours, there)
}

// release unlocks at once, whoever has inherited the descriptor: a process that is being started has it until its exec.
func (h *held) release() {
	dropLock(h.f)
	_ = h.f.Close() // nothing was written
}

// remove takes the file away, if this made it, and unlocks. Who waits for it sees that it is gone, and makes a new one.
func (h *held) remove() {
	if h.made && h.current() {
		_ = os.Remove(h.path) // an empty file that stays does no harm
	}
	h.release()
}

// enter prepares the directory for whoever opens the database in it, and takes a presence there.
func enter(dir string, cfg *config) (path string, here *held, err error) {
	if path, err = prepareDir(dir, cfg); err != nil {
		return "", nil, err
	}
	open := filepath.Join(filepath.Dir(path), openFile)
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		here, err = hold(open, false)
		switch {
		case err == nil:
			return path, here, nil
		case !errors.Is(err, errTaken):
			return "", nil, dirError(dir, err)
		case time.Since(start) >= cfg.busy:
			return "", nil, fmt.Errorf("%w: a restore has been replacing the queue in %s for %v", ErrBusy, dir, cfg.busy)
		}
	}
}

// takeAlone locks the directory for a restore. ErrBusy: it is open.
func takeAlone(dir string) (*held, error) {
	open := filepath.Join(dir, openFile)
	h, err := hold(open, true)
	if errors.Is(err, errTaken) {
		return nil, openIn(dir, openers(open))
	}
	if err != nil {
		return nil, dirError(dir, err)
	}
	return h, nil
}

func openIn(dir string, all []Opener) error {
	return fmt.Errorf("%w: the queue in %s is open%s; stop what uses it", ErrBusy, dir, inProcesses(all))
}

// inProcesses names processes, as far as they are known.
func inProcesses(all []Opener) string {
	switch len(all) {
	case 0:
		return " in another process"
	case 1:
		return fmt.Sprintf(" in process %d", all[0].PID)
	}
	const most = 10
	text := " in the processes"
	for i, o := range all {
		if i == most {
			return text + " and more"
		}
		text += fmt.Sprintf(" %d", o.PID)
	}
	return text
}
