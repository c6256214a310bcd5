package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A copy of a queue is made in a directory beside the place it is for, under a name that says that it is unfinished, and gets
// its own name when it is whole, checked, and on the disk.

const (
	draftInfix = ".partial-"
	draftMark  = "localqueue.partial" // in a draft's directory, locked while its maker lives; the last to go
)

type draft struct {
	dir  string // "": it has its own name by now
	mark *held
}

// newDraft makes a directory beside what is to be called base. What a dead process has left there is removed.
func newDraft(parent, base string) (*draft, error) {
	if err := removeDeadDrafts(parent, base); err != nil {
		return nil, dirError(parent, err)
	}
	for range 10 {
		dir, err := os.MkdirTemp(parent, base+draftInfix+"*")
		if err != nil {
			return nil, dirError(parent, err)
		}
		if len(filepath.Join(dir, dbFile)) > longestPath {
			return nil, errors.Join(tooLong(dir), os.Remove(dir))
		}
		mark, err := hold(filepath.Join(dir, draftMark), true)
		if err == nil {
			return &draft{dir: dir, mark: mark}, nil
		}
		_ = os.RemoveAll(dir)
		if !errors.Is(err, errTaken) && !errors.Is(err, os.ErrNotExist) {
			return nil, dirError(parent, err)
		}
		// Another process took it for one of a dead process, in the moment before it was marked as ours.
	}
	return nil, fmt.Errorf("%w: other processes are cleaning up in %s", ErrBusy, parent)
}

func removeDeadDrafts(parent, base string) error {
	siblings, err := os.ReadDir(parent)
	if errors.Is(err, os.ErrPermission) { // one may make a directory in another that one can't read
		return nil
	}
	for _, e := range siblings {
		dir := filepath.Join(parent, e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), base+draftInfix) {
			continue
		}
		path := filepath.Join(dir, draftMark)
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue // it is none of ours, or finished, which a mark of our making would undo
		}
		mark, err := lockOpen(path, f, true)
		if err != nil {
			continue // its maker lives
		}
		d := draft{dir: dir, mark: mark}
		d.discard()
	}
	return err
}

func (d *draft) path() string { return filepath.Join(d.dir, dbFile) }

// discard removes the draft, unless it has got its name.
func (d *draft) discard() {
	if d.dir != "" && d.clear(dbFile) == nil { // the mark goes last, so that who is killed here leaves it
		_ = os.RemoveAll(d.dir)
	}
	d.mark.release()
}

// clear removes what is beside the database and the mark, or with dbFile that too.
func (d *draft) clear(also string) error {
	entries, err := os.ReadDir(d.dir)
	for _, e := range entries {
		if name := e.Name(); name == also || name != dbFile && name != draftMark {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.dir, name)))
		}
	}
	return err
}

// explain tells what any error comes from while somebody has removed the draft.
func (d *draft) explain(err error) error {
	if err == nil || d.dir == "" {
		return err
	}
	if _, gone := os.Lstat(d.dir); errors.Is(gone, os.ErrNotExist) {
		return fmt.Errorf("%w: %s was removed while the copy was made there", ErrNotDirectory, d.dir)
	}
	return err
}

// verify opens the copy as any process would and examines all of it.
func (d *draft) verify(ctx context.Context, cfg *config) error {
	opts := []Option{MustExist(), WithLogger(cfg.logger), WithClock(cfg.clock)}
	if cfg.networkFS {
		opts = append(opts, AllowNetworkFS())
	}
	s, err := Open(d.dir, opts...)
	if err != nil {
		return err
	}
	found, err := s.Check(ctx, false)
	if closing := s.Close(); err == nil {
		err = closing
	}
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%w: what was read is damaged (%d), the first: %s; run Check on it to see all", ErrCorrupt, len(found), found[0].Text)
	}
	return err
}

// finish leaves a single file in the draft, and sees that it is on the disk.
func (d *draft) finish() error {
	if st, err := os.Stat(d.path() + "-wal"); err == nil && st.Size() > 0 {
		return fmt.Errorf("%w: the copy's WAL could not be emptied", ErrIO)
	}
	err := d.clear("")
	if err == nil {
		err = syncFile(d.path())
	}
	passing(beforeRename)
	if err == nil {
		err = os.Remove(d.mark.path)
	}
	if err == nil {
		err = syncDir(d.dir)
	}
	if err != nil {
		return dirError(d.dir, err)
	}
	return nil
}

// become gives the draft its own name, which must be free.
func (d *draft) become(dir string) error {
	if err := renameNew(d.dir, dir); err != nil {
		return takenError(dir, err)
	}
	d.dir = ""
	return nameSynced(dir)
}

// fill moves the database into a directory that has none.
func (d *draft) fill(dir string) error {
	path := filepath.Join(dir, dbFile)
	if err := renameNew(d.path(), path); err != nil {
		return takenError(path, err)
	}
	return nameSynced(path)
}

// fillEmpty moves the database to where there is an empty one.
func (d *draft) fillEmpty(dir string) error {
	path := filepath.Join(dir, dbFile)
	if st, err := os.Lstat(path); err != nil || st.Size() > 0 {
		return takenError(path, errors.Join(err, os.ErrExist))
	}
	if err := os.Rename(d.path(), path); err != nil {
		return dirError(path, err)
	}
	return nameSynced(path)
}

// likeOld gives the draft the modes and the owners of the directory that it is to replace, so that who used that can use it.
func (d *draft) likeOld(dir string) error {
	if err := copyOwner(dir, d.dir); err != nil {
		return err
	}
	return d.likeOldFile(dir)
}

func (d *draft) likeOldFile(dir string) error { return copyOwner(filepath.Join(dir, dbFile), d.path()) }

// copyOwner gives a file the owner and the mode of another. In a directory with the set-group-ID bit new files get its group.
func copyOwner(from, to string) error {
	old, err := os.Stat(from)
	if err != nil {
		return dirError(from, err)
	}
	made, err := os.Stat(to)
	if err != nil {
		return dirError(to, err)
	}
	was, is := old.Sys().(*syscall.Stat_t), made.Sys().(*syscall.Stat_t)
	if was.Uid != is.Uid || was.Gid != is.Gid {
		if err := os.Chown(to, int(was.Uid), int(was.Gid)); err != nil {
			return dirError(from, err)
		}
	}
	if err := os.Chmod(to, old.Mode()&(os.ModePerm|os.ModeSetgid|os.ModeSticky)); err != nil {
		return dirError(from, err)
	}
	return nil
}

// replace lets the draft and dir change places. The old directory is then called aside, which is free.
func (d *draft) replace(dir, aside string) error {
	// Under the old one's name to be first: then the one step that counts leaves nothing to do.
	if err := renameNew(d.dir, aside); err != nil {
		return takenError(aside, err)
	}
	d.dir = aside
	passing(beforeRename)
	switch err := exchange(aside, dir); {
	case errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV):
		return mountPoint(dir)
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP):
		return fmt.Errorf("%w: the file system of %s can't exchange two directories in one step; move it away yourself and restore without replacing", errors.ErrUnsupported, dir)
	case err != nil:
		return dirError(dir, err)
	}
	d.dir = ""
	return nameSynced(dir)
}

func mountPoint(dir string) error {
	return fmt.Errorf("%w: %s is a mount point, which no other directory can replace; restore to another one, or move the files localqueue.* in it away first", errors.ErrUnsupported, dir)
}

// nameSynced is the end of a copy: it has its name; whether a power cut may take that away is what remains to be said.
func nameSynced(path string) error {
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: %s is complete, but its name may not be on the disk yet: %w", ErrIO, path, err)
	}
	return nil
}

func takenError(path string, err error) error {
	if errors.Is(err, os.ErrExist) || errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("%w: somebody has just made %s", ErrExists, path)
	}
	return dirError(path, err)
}

// renameAbsent renames where the system knows no better way to a name that is free.
func renameAbsent(from, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, os.ErrExist)
	}
	return os.Rename(from, to)
}

// syncFile puts a database on the disk that no connection of this process has open.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
