package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareDir checks the directory, makes it if it may, and the lock file in it, and returns the database's path.
func prepareDir(dir string, cfg *config) (string, error) {
	path, err := findFile(dir, cfg)
	if err != nil {
		return "", err
	}
	_, missing := os.Stat(path)
	if err := makeLock(filepath.Join(filepath.Dir(path), lockFile), errors.Is(missing, os.ErrNotExist)); err != nil {
		return "", dirError(dir, err)
	}
	return path, nil
}

// findFile checks the directory, makes it if it may, and returns the database's path in it.
func findFile(dir string, cfg *config) (string, error) {
	if err := checkSQLite(); err != nil {
		return "", err
	}
	if dir == ":memory:" || strings.HasPrefix(dir, "file::memory:") {
		return "", fmt.Errorf("%w: %q is not a directory; for tests use queuetest.Open, which makes a temporary one", ErrInMemory, dir)
	}
	if dir == "" {
		return "", invalid("the directory's name is empty")
	}
	abs, err := absolute(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(abs, dbFile)
	if len(path) > longestPath {
		return "", tooLong(abs)
	}
	st, err := os.Stat(abs)
	switch {
	case err == nil && !st.IsDir():
		return "", fmt.Errorf("%w: %s is a file; name the directory that holds %s, or is to hold it", ErrNotDirectory, dir, dbFile)
	case errors.Is(err, os.ErrNotExist) && isLink(abs):
		return "", fmt.Errorf("%w: %s is a link to nothing", ErrNotDirectory, dir)
	case errors.Is(err, os.ErrNotExist) && cfg.mustExist:
		return "", fmt.Errorf("%w in %s: the directory doesn't exist", ErrNoQueue, dir)
	case errors.Is(err, os.ErrNotExist):
		if err := makeDir(abs); err != nil {
			return "", dirError(dir, err)
		}
	case err != nil:
		return "", dirError(dir, err)
	}
	if db, err := os.Stat(path); err == nil && db.IsDir() {
		return "", fmt.Errorf("%w: %s is a directory", ErrForeignFile, path)
	} else if lost := refuseLost(path); lost != nil {
		return "", lost
	} else if cfg.mustExist && (errors.Is(err, os.ErrNotExist) || err == nil && db.Size() == 0) {
		return "", fmt.Errorf("%w in %s", ErrNoQueue, dir)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", dirError(dir, err)
	}
	if err := refuseNetwork(abs, cfg); err != nil {
		return "", err
	}
	return path, nil
}

func tooLong(dir string) error {
	const most = longestPath - len("/"+dbFile)
	return invalid("the directory's name, %.80s..., has %d bytes from the root, and SQLite takes %d; choose a shorter one", dir, len(dir), most)
}

// refuseLost refuses a WAL whose database is missing, or empty: SQLite would make a new database and throw away what is in
// the WAL, which the lost one needs when it comes back.
func refuseLost(path string) error {
	wal, err := os.Stat(path + "-wal")
	if err != nil || wal.Size() == 0 {
		return nil
	}
	what := "missing"
	switch db, err := os.Stat(path); { // after the WAL: in a first open the database is the first to be there
	case err == nil && db.Size() > 0 || err != nil && !errors.Is(err, os.ErrNotExist):
		return nil
	case err == nil:
		what = "empty"
	}
	return fmt.Errorf("%w: %s is %s, but its WAL is there, and may hold jobs: put the database back; if it is lost, move %s away",
		ErrReplaced, path, what, path+"-wal")
}

func refuseNetwork(dir string, cfg *config) error {
	if fs, err := networkFS(dir); err != nil {
		return dirError(dir, err)
	} else if fs != "" && !cfg.networkFS {
		return fmt.Errorf("%w: %s is on %s, where SQLite's locks don't hold between machines; use a local disk", ErrNetworkFS, dir, fs)
	}
	return nil
}

// makeDir makes a directory and those above it, and syncs the names: SQLite does that for the files in it, but a power cut could
// take a new directory with all of them.
func makeDir(dir string) error {
	parent := filepath.Dir(dir)
	if _, err := os.Stat(parent); errors.Is(err, os.ErrNotExist) {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) { // another process may be at it too
		return err
	}
	return syncDir(parent)
}

// syncDir puts the names in a directory on the disk. Some file systems can't, and then need not.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrPermission) { // one may make a directory in another that one can't read
		return nil
	}
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// makeLock sees to it that the lock file is there before anything else: it lends the database, and the files that SQLite
// makes beside it, its mode. Before there is a database, that is 0600 whatever somebody has left there.
func makeLock(path string, first bool) error {
	f, err := openPlain(path)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil && first && st.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	return errors.Join(err, f.Close())
}

// openPlain opens a file of ours that is no database, or makes it, for the database's owner only.
func openPlain(path string) (*os.File, error) {
	f, err := openOrMake(path)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return nil, notAFile(path)
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() { // a FIFO, say: who locks it would wait for ever
		err = notAFile(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func openOrMake(path string) (*os.File, error) {
	const flags = os.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK
	for {
		f, err := os.OpenFile(path, flags, 0)
		if !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
		f, err = os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) { // another process was at it too
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := giveToOwner(f, filepath.Join(filepath.Dir(path), dbFile)); err != nil {
			return nil, errors.Join(err, os.Remove(path), f.Close())
		}
		return f, nil
	}
}

// giveToOwner gives a file that root has just made to the owner of the database, who would be locked out. SQLite does so with
// the files that it makes. Only a new file: whoever owns the directory may have put a link to another one there.
func giveToOwner(f *os.File, db string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	st, err := os.Stat(db)
	if err != nil { // there is none yet
		return nil
	}
	if owner := st.Sys().(*syscall.Stat_t); owner.Uid != 0 || owner.Gid != 0 {
		return f.Chown(int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// makeBeside makes a file beside the database in advance, for who knows of no owner.
func makeBeside(path string) error {
	f, err := openPlain(path)
	if err != nil {
		return err
	}
	return f.Close()
}

func notAFile(path string) error {
	return fmt.Errorf("%w: %s is not a plain file; move it away", ErrForeignFile, path)
}

func dirError(dir string, err error) error {
	switch {
	case errors.Is(err, ErrForeignFile):
		return err
	case errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: %s: %w", ErrReadOnly, dir, err)
	case errors.Is(err, unix.ENOTDIR) || errors.Is(err, os.ErrNotExist): // or removed meanwhile
		return fmt.Errorf("%w: %s: %w", ErrNotDirectory, dir, err)
	case errors.Is(err, unix.ENAMETOOLONG):
		return invalid("%s: %v; choose a shorter one", dir, err)
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w: %s: %w", ErrDiskFull, dir, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrIO, dir, err)
}

func isLink(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode()&os.ModeSymlink != 0
}
