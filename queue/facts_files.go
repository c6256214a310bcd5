package queue

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// FileFact is what a directory says of a file, without following a link.
type FileFact struct {
	Name  string
	Link  string      // where it leads, if it is a link to something
	Mode  fs.FileMode // with its type
	UID   int
	Links int // hard links
	Bytes int64
}

// maxFiles bounds the files that are told of.
const maxFiles = 1000

// directory says what a directory is, and, if its name is a link, where that leads.
func directory(dir string) (self FileFact, link string, err error) {
	st, err := os.Stat(dir)
	if err != nil {
		return self, "", err
	}
	self = fileFact(st)
	name, err := os.Lstat(filepath.Clean(dir)) // with a slash at the end, Lstat would follow the link
	if err == nil && name.Mode()&fs.ModeSymlink != 0 {
		link, err = filepath.EvalSymlinks(dir)
	}
	return self, link, err
}

// filesIn lists the queue's files in a directory.
func filesIn(dir string) (files []FileFact, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrPermission) {
		return nil, nil // one may work in a directory that one can't list
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "localqueue.") || len(files) == maxFiles {
			continue
		}
		if st, err := e.Info(); err == nil { // else it is gone by now
			fact := fileFact(st)
			if fact.Mode.Type() == fs.ModeSymlink {
				fact.Link, _ = filepath.EvalSymlinks(filepath.Join(dir, fact.Name)) // one that leads nowhere has no end
			}
			files = append(files, fact)
		}
	}
	return files, nil
}

func fileFact(st fs.FileInfo) FileFact {
	f := FileFact{Name: st.Name(), Mode: st.Mode(), UID: -1, Links: 1, Bytes: st.Size()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		f.UID, f.Links = int(sys.Uid), int(sys.Nlink) //nolint:unconvert // their types differ by system
	}
	return f
}

// behindLinks is where SQLite really works, and has its files beside: it follows the links in a database's name.
func behindLinks(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

func bytesAt(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

// notWritable tells why this user can't work in the directory.
func notWritable(path string) error {
	for _, p := range []string{filepath.Dir(path), path} {
		if err := unix.Access(p, unix.W_OK); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrReadOnly, p, err)
		}
	}
	return nil
}

// openers counts the descriptors of each process on the file that every Store holds. Where there is no /proc, and of other
// users' processes, nothing is known.
func openers(path string) (all []Opener) {
	file, err := os.Stat(path)
	if err != nil {
		return nil
	}
	stores := map[int]int{}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is sound
	for _, d := range descriptors {
		if name, err := os.Readlink(d); err != nil || filepath.Base(name) != openFile {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(d))))
		if theirs, gone := os.Stat(d); err == nil && gone == nil && os.SameFile(file, theirs) {
			stores[pid]++
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(stores)) {
		all = append(all, Opener{PID: pid, Stores: stores[pid], Stopped: stopped(pid)})
	}
	return all
}

// stopped reads a process's state: "12711 (its name) T 1 ...", where the name may hold anything.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false // it is gone
	}
	_, state, _ := strings.Cut(string(stat[max(0, bytes.LastIndexByte(stat, ')')):]), " ")
	return strings.HasPrefix(state, "T") || strings.HasPrefix(state, "t")
}

// heldAlone tells whether a restore has the directory for itself.
func heldAlone(open string) bool {
	f, err := os.OpenFile(open, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false // nobody has made it, or this user can't tell
	}
	defer func() { _ = f.Close() }() // nothing was written
	return lockedAlone(f)
}

// deadDrafts are the directories beside the queue's that a killed backup or restore has left.
func deadDrafts(dir string) (dead []string) {
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return nil // one may work in a directory whose neighbours one can't list
	}
	for _, e := range entries {
		draft := filepath.Join(filepath.Dir(dir), e.Name())
		if !strings.Contains(e.Name(), draftInfix) || len(dead) == maxFiles {
			continue
		}
		mark, err := os.OpenFile(filepath.Join(draft, draftMark), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if takeLock(mark, false) == nil { // else its maker lives
			dead = append(dead, draft)
		}
		_ = mark.Close() // nothing was written; the lock ends with it
	}
	return dead
}
