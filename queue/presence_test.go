package queue_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

func init() {
	roles["idle"] = idle
}

// idle has a queue open, and puts and closes when a line tells it to.
func idle() {
	s, err := queue.Open(os.Getenv(dirEnv))
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println("open")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "put" {
			fmt.Println(second(s.Default().Put(context.Background(), nil)))
		} else {
			fmt.Println(s.Close())
		}
	}
}

func TestAQueueThatIsOpenIsNotReplaced(t *testing.T) {
	backup := backupOf(t, 3)
	replace := func(dir string) error {
		return second(queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: true}))
	}
	t.Run("in another process", func(t *testing.T) {
		dir := queueWith(t, 1)
		other := startAs(t, "idle", dirEnv+"="+dir)
		same(t, "the other one is", "open", other.hears())
		before := names(t, filepath.Dir(dir))
		err := replace(dir)
		matches(t, err, queue.ErrBusy)
		contains(t, err, strconv.Itoa(other.cmd.Process.Pid))
		same(t, "names", before, names(t, filepath.Dir(dir)))
		other.tell("put")
		same(t, "the other one's put", "<nil>", other.hears())
		other.tell("close")
		same(t, "the other one's close", "<nil>", other.hears())
		same(t, "jobs", int64(2), ready(t, dir))
		ok(t, replace(dir))
		same(t, "jobs", int64(3), ready(t, dir))
	})
	t.Run("in this process", func(t *testing.T) {
		dir := queueWith(t, 1)
		a, b := openStore(t, dir), openStore(t, dir)
		matches(t, replace(dir), queue.ErrBusy)
		ok(t, a.Close())
		matches(t, replace(dir), queue.ErrBusy)
		ok(t, second(b.Default().Put(t.Context(), nil)))
		ok(t, b.Close())
		ok(t, replace(dir))
	})
	t.Run("by one that was killed", func(t *testing.T) {
		dir := queueWith(t, 1)
		other := startAs(t, "idle", dirEnv+"="+dir)
		same(t, "the other one is", "open", other.hears())
		ok(t, other.cmd.Process.Kill())
		same(t, "the other one says", "", other.hears())
		ok(t, untilDone(t, func() error { return replace(dir) })) // the kernel may still be clearing up
		same(t, "jobs", int64(3), ready(t, dir))
	})
}

// untilDone calls again while it is busy.
func untilDone(t *testing.T, call func() error) (err error) {
	t.Helper()
	for range 1000 {
		if err = call(); !errors.Is(err, queue.ErrBusy) {
			break
		}
	}
	return err
}

// A Store that fails to open, or a schema that is only looked at, leaves nobody there.
func TestOnlyAnOpenStoreIsPresent(t *testing.T) {
	backup, dir := backupOf(t, 3), queueWith(t, 1)
	sqliteFile(t, filepath.Join(dir, "localqueue.db"), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (900, 1)")
	matches(t, second(queue.Open(dir)), queue.ErrNewerSchema)
	matches(t, second(queue.Migrate(t.Context(), dir)), queue.ErrNewerSchema)
	restore(t, backup, dir, queue.RestoreOptions{Replace: true})
	ok(t, second(queue.Migrate(t.Context(), dir)))
	ok(t, second(queue.MigrateStatus(t.Context(), dir)))
	restore(t, backup, dir, queue.RestoreOptions{Replace: true})
}

func TestAPresenceThatIsNoPlainFileIsRefused(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a FIFO":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a link":      func(path string) error { return os.Symlink("/dev/full", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "localqueue.open")
			ok(t, make(path))
			_, err := queue.Open(dir)
			matches(t, err, queue.ErrForeignFile)
			contains(t, err, path)
		})
	}
}

// Somebody may have tidied it away: the next opener makes it anew.
func TestAPresenceThatIsRemovedIsMadeAnew(t *testing.T) {
	backup, dir := backupOf(t, 3), queueWith(t, 1)
	ok(t, os.Remove(filepath.Join(dir, "localqueue.open")))
	s := openStore(t, dir)
	_, err := queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: true})
	matches(t, err, queue.ErrBusy)
	ok(t, s.Close())
	st, err := os.Stat(filepath.Join(dir, "localqueue.open"))
	ok(t, err)
	same(t, "mode", os.FileMode(0o600), st.Mode())
}
