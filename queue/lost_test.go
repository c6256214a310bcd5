package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

// crashed makes a queue with a job in its file and one in its WAL, as a process that was killed leaves it.
func crashed(t *testing.T) (dir string) {
	t.Helper()
	dir = queueWith(t, 1)
	if _, err := inRole(t, "crash", dirEnv+"="+dir); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
	return dir
}

// A database may be away for a while, and its WAL left: whoever opens the directory meanwhile must not throw that away.
func TestAWALWhoseDatabaseIsAwayIsKeptUntilThatIsBack(t *testing.T) {
	backup := backupOf(t, 3)
	for name, lose := range map[string]func(path string) error{
		"missing": func(string) error { return nil },
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashed(t)
			path := filepath.Join(dir, "localqueue.db")
			ok(t, os.Rename(path, dir+".away"))
			ok(t, lose(path))
			before := content(t, dir)
			for op, open := range map[string]func() error{
				"open":            func() error { return second(queue.Open(dir)) },
				"open, must":      func() error { return second(queue.Open(dir, queue.MustExist())) },
				"migrate":         func() error { return second(queue.Migrate(t.Context(), dir)) },
				"migrate, status": func() error { return second(queue.MigrateStatus(t.Context(), dir)) },
				"inspect":         func() error { return second(queue.Inspect(t.Context(), dir)) },
				"restore": func() error {
					return second(queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{}))
				},
				"restore, replace": func() error {
					return second(queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: true}))
				},
				"restore, from it": func() error {
					return second(queue.Restore(t.Context(), dir, dir+".new", queue.RestoreOptions{}))
				},
			} {
				err := open()
				if !errors.Is(err, queue.ErrReplaced) || !strings.Contains(err.Error(), path+" is "+name) || !strings.Contains(err.Error(), path+"-wal") {
					t.Errorf("%s: %v; want ErrReplaced that names the files", op, err)
				}
				same(t, "files after "+op, before, content(t, dir))
			}
			ok(t, os.Rename(dir+".away", path))
			same(t, "jobs", int64(2), ready(t, dir))

			dir = crashed(t)
			path = filepath.Join(dir, "localqueue.db")
			ok(t, os.Remove(path))
			ok(t, lose(path))
			ok(t, os.Rename(path+"-wal", dir+".wal")) // an operator gives it up
			works(t, openStore(t, dir))
		})
	}
}

// An empty WAL holds nothing, and a journal beside an empty database is what a first open leaves that was killed.
func TestWhatAFirstOpenLeavesIsNoLostDatabase(t *testing.T) {
	for name, left := range map[string]map[string]string{
		"an empty WAL":                   {"-wal": ""},
		"an empty database and its WAL":  {"": "", "-wal": ""},
		"a journal of an empty database": {"": "", "-journal": repeat("\x00", 512)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for suffix, text := range left {
				ok(t, os.WriteFile(filepath.Join(dir, "localqueue.db"+suffix), []byte(text), 0o600))
			}
			works(t, openStore(t, dir))
		})
	}
}

func TestAnEmptyDatabaseIsNoQueue(t *testing.T) {
	backup, dir := backupOf(t, 3), t.TempDir()
	path := filepath.Join(dir, "localqueue.db")
	ok(t, os.WriteFile(path, nil, 0o600))
	matches(t, second(queue.Open(dir, queue.MustExist())), queue.ErrNoQueue)
	matches(t, second(queue.Inspect(t.Context(), dir)), queue.ErrNoQueue)
	info := restore(t, backup, dir, queue.RestoreOptions{})
	same(t, "replaced", "", info.Replaced)
	same(t, "jobs", int64(3), ready(t, dir))

	ok(t, os.WriteFile(path, nil, 0o600))
	ok(t, os.WriteFile(path+"-journal", []byte("of what was there before"), 0o600))
	matches(t, second(queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{})), queue.ErrExists)
	info, err := queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: true})
	ok(t, err)
	same(t, "kept", true, info.Replaced != "")
	same(t, "jobs", int64(3), ready(t, dir))

	ok(t, os.Remove(path))
	ok(t, os.WriteFile(path+"-journal", []byte("of a lost one"), 0o600))
	for _, replace := range []bool{false, true} {
		_, err = queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: replace})
		matches(t, err, queue.ErrReplaced)
		contains(t, err, path+"-journal")
	}
}
