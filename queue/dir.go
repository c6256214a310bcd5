package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(abs, dbFile)
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

// openPlain opens a file of ours that is no database, or makes it, for its owner only.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
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

func notAFile(path string) error {
	return fmt.Errorf("%w: %s is not a plain file; move it away", ErrForeignFile, path)
}

func dirError(dir string, err error) error {
	switch {
	case errors.Is(err, ErrForeignFile):
		return err
	case errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: %s: %w", ErrReadOnly, dir, err)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: %s: %w", ErrNotDirectory, dir, err)
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w: %s: %w", ErrDiskFull, dir, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrIO, dir, err)
}

func isLink(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode()&os.ModeSymlink != 0
}
