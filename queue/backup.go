package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// BackupOptions say how a backup goes. The zero value is fine.
type BackupOptions struct {
	// Progress is told after every 512 pages of the file how many are copied. When done is total, what is left is to check the
	// copy. The backup waits for it. nil: nobody is told.
	Progress func(done, total int)
}

// BackupInfo describes a finished backup.
type BackupInfo struct {
	Dir   string    // its directory, absolute
	Bytes int64     // the size of the file in it
	At    time.Time // by the Store's clock, just before the moment whose state it holds
}

// Backup copies the queue, as it is in one moment, into the new directory dest, while this and other processes go on: only
// whole transactions are in it. The parent of dest must exist, and dest must not. The copy is made under a temporary name
// beside it, checked in full as Check does, and synced to the disk before it is called dest; after an error nothing is left. It is
// a queue like any other, in one file: [Open] opens it, and [Restore] puts it in a queue's place. Jobs that are leased in the
// moment of the backup are leased in it, and are delivered again when that lease ends.
//
// Until the copy is made, the WAL of the queue can't start anew: it grows by what is written meanwhile. A backup that a killed
// process has left unfinished, dest.partial-N, is removed by the next one to the same dest.
//
// Errors: ErrInvalid (dest is in the directory of a queue, or its name is too long), ErrExists, ErrNotDirectory (no parent, or it
// was removed meanwhile), ErrNetworkFS, ErrReadOnly,
// ErrDiskFull (where dest is), ErrCorrupt (the queue has findings), ErrClosed, ErrReplaced, ErrIO, or the context's.
func (s *Store) Backup(ctx context.Context, dest string, opts BackupOptions) (BackupInfo, error) {
	info, err := s.backup(ctx, dest, opts)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("backup of %s to %s: %w", s.dir, dest, err)
	}
	return info, nil
}

func (s *Store) backup(ctx context.Context, dest string, opts BackupOptions) (BackupInfo, error) {
	var info BackupInfo
	dest, err := backupPlace(dest, &s.cfg)
	if err != nil {
		return info, err
	}
	ctx, free, err := s.untilClosed(ctx)
	if err != nil {
		return info, err
	}
	defer free()
	if err := s.file.checkNow(); err != nil {
		return info, err
	}
	d, err := newDraft(filepath.Dir(dest), filepath.Base(dest))
	if err != nil {
		return info, err
	}
	defer d.discard()

	info = BackupInfo{Dir: dest, At: s.Now()}
	src := sql.OpenDB(newConnector(s.path, s.cfg.busy, "&mode=rw", readerPragmas()).reading())
	err = copyDatabase(ctx, src, d.path(), opts.Progress)
	if closing := src.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = plantedTornCopy(s.path, d.path())
	}
	if err == nil {
		err = s.file.checkNow()
	}
	if err == nil {
		err = d.verify(ctx, &s.cfg)
	}
	if err == nil {
		err = d.finish()
	}
	if err == nil {
		err = s.patience(ctx).over()
	}
	if err == nil {
		info.Bytes, err = sizeOf(d.path())
	}
	if err == nil {
		err = d.become(dest)
	}
	return info, endedBy(ctx, d.explain(storeError(d.path(), err)))
}

// untilClosed is a context that ends when the Store is closed, too; free ends it.
func (s *Store) untilClosed(ctx context.Context) (_ context.Context, free func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.closing:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-ended }, ctx.Err()
}

// endedBy tells why a call ended whose context has ended: an interrupted statement says only that it was interrupted.
func endedBy(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrExists) {
		return context.Cause(ctx)
	}
	return err
}

// backupPlace checks where a backup is to go, and returns its absolute name.
func backupPlace(dest string, cfg *config) (string, error) {
	if dest == "" {
		return "", invalid("the name of the backup's directory is empty")
	}
	dest, err := absolute(dest)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(dest); err == nil {
		return "", fmt.Errorf("%w; name a new directory", ErrExists)
	}
	parent, err := existingDir(filepath.Dir(dest))
	if err != nil {
		return "", err
	}
	dest = filepath.Join(parent, filepath.Base(dest))
	if err := outsideQueues(parent); err != nil {
		return "", err
	}
	return dest, refuseNetwork(parent, cfg)
}

// existingDir is a directory with the links in its name resolved.
func existingDir(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: %s doesn't exist; make it first", ErrNotDirectory, dir)
	}
	if err != nil {
		return "", dirError(dir, err)
	}
	if st, err := os.Stat(real); err != nil {
		return "", dirError(dir, err)
	} else if !st.IsDir() {
		return "", fmt.Errorf("%w: %s", ErrNotDirectory, dir)
	}
	return real, nil
}

// outsideQueues refuses a directory, its links resolved, that holds a queue or is below one that does: what is put there would
// go with that queue when it is replaced or removed.
func outsideQueues(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, dbFile)); err == nil {
			return invalid("it is inside the directory of the queue in %s; name one outside", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// isWithin tells whether a directory, its links resolved, is another one or below it.
func isWithin(dir, other string) (bool, error) {
	outer, err := os.Stat(other)
	if err != nil {
		return false, dirError(other, err)
	}
	for {
		st, err := os.Stat(dir)
		if err != nil {
			return false, dirError(dir, err)
		}
		if os.SameFile(st, outer) {
			return true, nil
		}
		if dir == filepath.Dir(dir) {
			return false, nil
		}
		dir = filepath.Dir(dir)
	}
}

func sizeOf(path string) (int64, error) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func device(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return uint64(st.Dev), err //nolint:unconvert // Dev is int32 on some systems
}
