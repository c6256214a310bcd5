package doctor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

const manyAcked = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
INSERT INTO messages (queue, payload, status, attempts, delivery, max_attempts, available_at, created_at, updated_at)
SELECT 'default', x'01', %d, 1, 1, 4, 1000, 1000, 1000 FROM n`

// cases provoke each finding. What is made is closed when the directory is examined, so that all of it must stay as it is,
// unless the case says that it is live.
var cases = []struct {
	name string
	want []string
	make func(t *testing.T) string
	opts []queue.Option
	live bool
	says string // in the first finding's text
}{
	{name: "a new queue", make: func(t *testing.T) string { return made(t, nil) }},
	{name: "a live queue at work", live: true, make: func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "q")
		claimed(t)(queuetest.OpenDir(t, dir))
		return dir
	}},
	{name: "a live queue on which somebody waits", live: true, make: func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "q")
		ctx, cancel := context.WithCancel(t.Context())
		s := queuetest.OpenDir(t, dir)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = s.Default().Get(ctx)
		}()
		t.Cleanup(func() { cancel(); <-done })
		for len(bells(t, dir)) == 0 {
			time.Sleep(time.Millisecond)
		}
		return dir
	}},

	{name: "a broken header", want: []string{"problem corrupt"}, make: func(t *testing.T) string { return damaged(t, 0, 100) }},
	{name: "a broken schema", want: []string{"problem corrupt"}, make: func(t *testing.T) string { return damaged(t, 100, 4000) }},
	{name: "text", want: []string{"problem corrupt"}, make: func(t *testing.T) string {
		dir := t.TempDir()
		ok(t, os.Chmod(dir, 0o700))
		ok(t, os.WriteFile(filepath.Join(dir, "localqueue.db"), []byte(strings.Repeat("no database. ", 1000)), 0o600))
		return dir
	}},
	{name: "another program's file", want: []string{"problem foreign_file"}, make: func(t *testing.T) string {
		dir := t.TempDir()
		ok(t, os.Chmod(dir, 0o700))
		raw(t, dir, "CREATE TABLE people (name TEXT)")
		ok(t, os.Chmod(filepath.Join(dir, "localqueue.db"), 0o600))
		return dir
	}},
	{name: "a newer schema", want: []string{"problem newer_schema"}, says: "version 900", make: func(t *testing.T) string {
		dir := made(t, nil)
		raw(t, dir, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (900, 1)")
		return dir
	}},
	{name: "an old schema", want: []string{"problem old_schema"}, says: "version 0", make: func(t *testing.T) string {
		dir := t.TempDir()
		ok(t, os.Chmod(dir, 0o700))
		schema, err := os.ReadFile("../sql/sqlite/testdata/original/1.0.0.sql")
		ok(t, err)
		raw(t, dir, "PRAGMA journal_mode = WAL", string(schema))
		ok(t, os.Chmod(filepath.Join(dir, "localqueue.db"), 0o600))
		return dir
	}},
	{name: "another journal mode", want: []string{"problem journal_mode"}, says: `"delete"`, make: func(t *testing.T) string {
		dir := made(t, nil)
		raw(t, dir, "PRAGMA journal_mode = DELETE")
		return dir
	}},
	{name: "a file that another program keeps for itself", live: true, want: []string{"problem busy"}, opts: []queue.Option{queue.WithBusyTimeout(100 * time.Millisecond)}, make: func(t *testing.T) string {
		dir := made(t, nil)
		connection(t, dir, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN IMMEDIATE", "UPDATE queues SET paused = 0")
		return dir
	}},
	{name: "a writer that doesn't end", live: true, want: []string{"problem busy"}, opts: []queue.Option{queue.WithBusyTimeout(100 * time.Millisecond)},
		says: onLinux(fmt.Sprintf("process %d held the write lock", os.Getpid()), "held the write lock"), make: func(t *testing.T) string {
			dir := made(t, nil)
			connection(t, dir, "BEGIN IMMEDIATE")
			return dir
		}},
	{name: "a first opening that doesn't end", live: true, want: []string{"problem busy"}, opts: []queue.Option{queue.WithBusyTimeout(100 * time.Millisecond)}, says: "opening or migrating", make: func(t *testing.T) string {
		dir := made(t, nil)
		raw(t, dir, "DELETE FROM goose_db_version WHERE version_id > 1")
		lock := flock.New(filepath.Join(dir, "localqueue.lock"))
		ok(t, lock.Lock())
		t.Cleanup(func() { ok(t, lock.Close()) })
		return dir
	}},

	{name: "a WAL that a reader holds back", live: true, want: []string{onLinux("problem wal_pinned", "note wal_large")},
		says: onLinux(fmt.Sprintf("process %d reads all the time", os.Getpid()), "aren't in the file"), make: func(t *testing.T) string {
			dir := filepath.Join(t.TempDir(), "q")
			s := queuetest.OpenDir(t, dir)
			claimed(t)(s)
			_, reader := connection(t, dir, "BEGIN")
			var n int
			ok(t, reader.QueryRowContext(t.Context(), "SELECT count(*) FROM messages").Scan(&n))
			fillWAL(t, s)
			return dir
		}},
	{name: "a WAL that nobody copies", live: true, want: []string{"note wal_large"}, make: func(t *testing.T) string {
		dir := made(t, nil)
		connection(t, dir, "PRAGMA wal_autocheckpoint = 0", "INSERT INTO payloads VALUES (1, zeroblob(20000000))", "DELETE FROM payloads")
		return dir
	}},
	{name: "room in the file", want: []string{"note free_pages"}, make: func(t *testing.T) string {
		dir := made(t, nil)
		raw(t, dir, "INSERT INTO payloads VALUES (1, zeroblob(70000000))", "DELETE FROM payloads")
		return dir
	}},
	{name: "an ANALYZE", want: []string{"note analyzed"}, make: func(t *testing.T) string {
		dir := made(t, acked(t))
		raw(t, dir, "ANALYZE")
		return dir
	}},
	{name: "two Stores in a process", live: true, want: []string{"note duplicate_stores"}, says: fmt.Sprintf("process %d has 2", os.Getpid()), make: func(t *testing.T) string {
		if runtime.GOOS != "linux" {
			t.Skip("there is no /proc")
		}
		dir := filepath.Join(t.TempDir(), "q")
		queuetest.OpenDir(t, dir)
		queuetest.OpenDir(t, dir)
		return dir
	}},

	{name: "a directory that all may write to", want: []string{"problem dir_mode"}, says: "0777: every user", make: func(t *testing.T) string { return chmodded(t, "", 0o777) }},
	{name: "a directory that a group may write to", want: []string{"problem dir_mode"}, says: "0770: its group", make: func(t *testing.T) string { return chmodded(t, "", 0o770) }},
	{name: "a directory that all may read", want: []string{"note dir_mode"}, says: "0755: every user", make: func(t *testing.T) string { return chmodded(t, "", 0o755) }},
	{name: "a link to a directory", want: []string{"note dir_link"}, says: "/q", make: func(t *testing.T) string {
		dir := made(t, nil)
		ok(t, os.Symlink(dir, dir+"-link"))
		return dir + "-link/"
	}},
	{name: "a database that all may write to", want: []string{"problem file_mode"}, says: "change localqueue.db (0666)", make: func(t *testing.T) string { return chmodded(t, "localqueue.db", 0o666) }},
	{name: "a database that all may read", want: []string{"note file_mode"}, says: "read localqueue.db (0644)", make: func(t *testing.T) string { return chmodded(t, "localqueue.db", 0o644) }},
	{name: "a link for a side file", want: []string{"problem odd_file"}, says: "localqueue.line is a link", make: func(t *testing.T) string {
		dir := made(t, nil)
		ok(t, os.Rename(filepath.Join(dir, "localqueue.line"), filepath.Join(dir, "line")))
		ok(t, os.Symlink("line", filepath.Join(dir, "localqueue.line")))
		return dir
	}},
	{name: "a link for the database", want: []string{"problem odd_file"}, says: "the database is a link to /", make: func(t *testing.T) string {
		dir := made(t, nil)
		ok(t, os.Rename(filepath.Join(dir, "localqueue.db"), filepath.Join(dir, "there.db")))
		ok(t, os.Symlink("there.db", filepath.Join(dir, "localqueue.db")))
		return dir
	}},
	{name: "a file for a doorbell, and a FIFO for the lock", want: []string{"problem odd_file"}, says: "localqueue.bell.7 is a plain file, localqueue.lock is a FIFO", make: func(t *testing.T) string {
		dir := made(t, nil)
		ok(t, os.WriteFile(filepath.Join(dir, "localqueue.bell.7"), nil, 0o600))
		ok(t, os.Remove(filepath.Join(dir, "localqueue.lock")))
		ok(t, unix.Mkfifo(filepath.Join(dir, "localqueue.lock"), 0o600))
		return dir
	}},
	{name: "a second name of the database", want: []string{"problem hard_link"}, make: func(t *testing.T) string {
		dir := made(t, nil)
		ok(t, os.Link(filepath.Join(dir, "localqueue.db"), filepath.Join(dir, "other.db")))
		return dir
	}},
	{name: "another user's directory", want: []string{"note owner"}, make: func(t *testing.T) string {
		dir := made(t, nil)
		chown(t, dir)
		return dir
	}},
	{name: "another user's file", want: []string{"problem mixed_owner"}, says: "localqueue.lock (user 65534)", make: func(t *testing.T) string {
		dir := made(t, nil)
		chown(t, filepath.Join(dir, "localqueue.lock"))
		return dir
	}},
	{name: "a file system that can't be written", live: true, want: []string{"problem read_only"}, says: "read-only file system", make: func(t *testing.T) string {
		dir, at := made(t, nil), t.TempDir()
		ok(t, os.Chmod(dir, 0o700))
		if err := unix.Mount(dir, at, "", unix.MS_BIND, ""); err != nil {
			t.Skip("nothing can be mounted here: ", err)
		}
		t.Cleanup(func() { ok(t, unix.Unmount(at, unix.MNT_DETACH)) })
		ok(t, unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		return at
	}},
	{name: "an unfinished backup", want: []string{"note leftover"}, make: func(t *testing.T) string {
		dir := made(t, nil)
		ok(t, os.Mkdir(dir+".partial-1", 0o700))
		ok(t, os.WriteFile(filepath.Join(dir+".partial-1", "localqueue.partial"), nil, 0o600))
		ok(t, os.Mkdir(dir+".partial-2", 0o700)) // of others
		return dir
	}},

	{name: "a memory disk", want: []string{"note memory_fs"}, make: func(t *testing.T) string { return onDisk(t, 100, nil) }},
	{name: "a full disk", want: []string{"problem disk_full", "note memory_fs"}, make: func(t *testing.T) string { return onDisk(t, 30, nil) }},
	{name: "a disk without room for another", want: []string{"note memory_fs", "note disk_small"}, make: func(t *testing.T) string {
		// Through a WAL the file would need its size twice.
		return onDisk(t, 170, func(dir string) {
			raw(t, dir, "PRAGMA journal_mode = DELETE", "INSERT INTO payloads VALUES (1, zeroblob(90000000))", "PRAGMA journal_mode = WAL")
		})
	}},

	{name: "a lease that has just ended", want: []string{"note expired_leases"}, opts: []queue.Option{ahead(61 * time.Second)}, says: "1 expired delivery is",
		make: func(t *testing.T) string { return made(t, claimed(t)) }},
	{name: "leases that ended long ago", want: []string{"problem stuck_leases"}, opts: []queue.Option{ahead(time.Hour)}, says: "2 expired deliveries are to be picked up, the first for 59m",
		make: func(t *testing.T) string { return made(t, func(s *queue.Store) { claimed(t)(s); claimed(t)(s) }) }},
	{name: "a lease without an end", want: []string{"problem stuck_leases"}, says: "no end", make: func(t *testing.T) string {
		dir := made(t, claimed(t))
		raw(t, dir, "UPDATE messages SET lease_until = NULL")
		return dir
	}},
	{name: "a lease for ever", want: []string{"problem far_lease"}, make: func(t *testing.T) string {
		dir := made(t, claimed(t))
		raw(t, dir, "UPDATE messages SET lease_until = 9000000000000")
		return dir
	}},
	{name: "a delay for ever", want: []string{"problem far_delay"}, make: func(t *testing.T) string {
		dir := made(t, put(t, queue.Delay(time.Hour)))
		raw(t, dir, "UPDATE messages SET available_at = 9000000000000")
		return dir
	}},
	{name: "jobs that nobody claims", want: []string{"note nobody_claims"}, opts: []queue.Option{ahead(2 * time.Hour)}, says: "due for 2h00m", make: func(t *testing.T) string { return made(t, put(t)) }},
	{name: "a delayed job that nobody claims", want: []string{"note nobody_claims"}, opts: []queue.Option{ahead(2 * time.Hour)}, says: "due for 1h00m",
		make: func(t *testing.T) string { return made(t, put(t, queue.Delay(time.Hour-time.Second))) }},
	{name: "a paused queue", want: []string{"note paused"}, opts: []queue.Option{ahead(2 * time.Hour)}, says: "claims are paused, with 1 due", make: func(t *testing.T) string {
		return made(t, func(s *queue.Store) {
			put(t)(s)
			put(t, queue.Delay(3*time.Hour))(s)
			ok(t, s.Default().Pause(context.Background()))
		})
	}},
	{name: "finished jobs by the thousands", want: []string{"note acked_grown", "note failed_grown"}, make: func(t *testing.T) string {
		dir := made(t, nil)
		raw(t, dir, fmt.Sprintf(manyAcked, 2), fmt.Sprintf(manyAcked, 3))
		return dir
	}},
	{name: "retention that nobody applies", want: []string{"note retention_late"}, opts: []queue.Option{ahead(5 * time.Hour)}, says: "acked jobs are kept for 3h", make: func(t *testing.T) string {
		return made(t, func(s *queue.Store) { acked(t)(s); ok(t, s.Default().KeepAcked(context.Background(), 2*time.Hour)) })
	}},
	{name: "a put from the future", want: []string{"problem future_stamps"}, says: "1h00m", make: func(t *testing.T) string {
		return made(t, put(t), ahead(time.Hour+10*time.Second))
	}},
	{name: "an ack from the future", want: []string{"problem future_stamps"}, make: func(t *testing.T) string { return made(t, acked(t), ahead(2*time.Minute)) }},
}

// bells are the FIFOs of those who wait.
func bells(t *testing.T, dir string) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("who waits here has no FIFO")
	}
	all, err := filepath.Glob(filepath.Join(dir, "localqueue.bell.*"))
	ok(t, err)
	return all
}

func onLinux(there, elsewhere string) string {
	if runtime.GOOS == "linux" {
		return there
	}
	return elsewhere
}

func damaged(t *testing.T, at, n int) string {
	t.Helper()
	dir := made(t, acked(t))
	f, err := os.OpenFile(filepath.Join(dir, "localqueue.db"), os.O_WRONLY, 0)
	ok(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("\xA5", n)), int64(at))
	ok(t, err)
	ok(t, f.Close())
	return dir
}

func chmodded(t *testing.T, name string, mode os.FileMode) string {
	t.Helper()
	dir := made(t, nil)
	ok(t, os.Chmod(filepath.Join(dir, name), mode))
	return dir
}

func chown(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	ok(t, os.Chown(path, 65534, 65534))
}

// onDisk makes a queue on a disk of its own, in memory.
func onDisk(t *testing.T, megabytes int, use func(dir string)) string {
	t.Helper()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		t.Skip("no small disk can be mounted here: ", err)
	}
	t.Cleanup(func() { ok(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	dir := filepath.Join(disk, "q")
	fill(t, dir, nil)
	if use != nil {
		use(dir)
	}
	return dir
}

func fillWAL(t *testing.T, s *queue.Store) {
	t.Helper()
	q, err := s.Queue("big", queue.WithMaxPayload(1<<20))
	ok(t, err)
	for range 40 {
		res, err := q.Put(t.Context(), make([]byte, 500_000))
		ok(t, err)
		ok(t, q.Delete(t.Context(), res.ID))
	}
}
