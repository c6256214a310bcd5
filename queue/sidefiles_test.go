package queue_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

// The files beside the database, where something else is in their place.

func TestWithoutALineOrABellTheQueueSaysSoAndWorks(t *testing.T) {
	for name, text := range map[string]string{"localqueue.line": "no order", "localqueue.bell": "looks often"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ok(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			var log bytes.Buffer
			open := func() *queue.Store {
				s, err := queue.Open(dir, queue.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				ok(t, err)
				t.Cleanup(func() { ok(t, s.Close()) })
				return s
			}
			a, b := open(), open()
			got := inBackground(func() (*queue.Job, error) { return a.Default().Get(context.Background()) })
			for queue.Waiting(a) == 0 {
				runtime.Gosched()
			}
			ok(t, second(b.Default().Put(context.Background(), []byte("x"))))
			j, err := got.await(t)
			ok(t, err)
			ok(t, j.Ack(context.Background()))
			if !strings.Contains(log.String(), text) {
				t.Errorf("the log doesn't say it: %q", log.String())
			}
		})
	}
}

func TestALockThatIsNoPlainFileIsRefused(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a FIFO":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a link":      func(path string) error { return os.Symlink("/dev/full", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "localqueue.lock")
			ok(t, make(path))
			if _, err := queue.Open(dir); !errors.Is(err, queue.ErrForeignFile) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v; want ErrForeignFile that names the file", err)
			}
		})
	}
}

func TestANewDatabaseIsForItsOwnerWhateverTheLockFilesMode(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "localqueue.lock")
	ok(t, os.WriteFile(lock, nil, 0o600))
	ok(t, os.Chmod(lock, 0o666))
	s, err := queue.Open(dir)
	ok(t, err)
	defer func() { ok(t, s.Close()) }()
	ok(t, second(s.Default().Put(context.Background(), nil)))
	for _, name := range []string{"localqueue.db", "localqueue.db-wal", "localqueue.db-shm"} {
		st, err := os.Stat(filepath.Join(dir, name))
		ok(t, err)
		same(t, name, fs.FileMode(0o600), st.Mode())
	}
}

// SQLite asks the lock file for a mode whenever it opens a file; somebody may have tidied it away.
func TestALockFileThatIsRemovedUnderALiveStoreIsMadeAnew(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	lock := filepath.Join(dir, "localqueue.lock")
	first, err := queue.Open(dir)
	ok(t, err)
	defer func() { ok(t, first.Close()) }()
	for range 20 {
		ok(t, os.Remove(lock))
		ok(t, second(first.Default().Stats(ctx))) // perhaps on a new connection
		s, err := queue.Open(dir)
		ok(t, err)
		ok(t, os.Remove(lock))
		ok(t, second(s.Default().Put(ctx, nil)))
		ok(t, second(s.Default().TryGet(ctx)))
		ok(t, s.Close())
		if _, err := os.Stat(lock); errors.Is(err, fs.ErrNotExist) {
			ok(t, os.WriteFile(lock, nil, 0o600))
		}
	}
}
