package queue_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

func inspect(t *testing.T, dir string, opts ...queue.Option) *queue.Facts {
	t.Helper()
	f, err := queue.Inspect(t.Context(), dir, opts...)
	ok(t, err)
	return f
}

func TestInspectTellsWhereTheJobsStand(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	clock := &fakeClock{}
	clock.set(start)
	s := openStore(t, dir, queue.WithClock(clock.now))
	q := s.Default()
	ok(t, second(q.Put(ctx, nil)))
	ok(t, second(q.Put(ctx, nil)))
	ok(t, second(q.Put(ctx, nil)))
	ok(t, second(q.Put(ctx, nil, queue.Delay(time.Hour))))
	ok(t, second(q.Put(ctx, nil, queue.Delay(time.Minute))))
	clock.set(start.Add(2 * time.Second))
	j, err := q.TryGet(ctx)
	ok(t, err)
	ok(t, j.Ack(ctx))
	ok(t, second(q.TryGet(ctx)))
	ok(t, q.Pause(ctx))

	clock.set(start.Add(62 * time.Second))
	before, err := q.Stats(ctx)
	ok(t, err)
	f := inspect(t, dir, queue.WithClock(clock.now))
	same(t, "queues", []queue.QueueFacts{{
		Stats:     queue.Stats{Queue: "default", Ready: 3, Delayed: 1, Processing: 1, Expired: 1, Acked: 1, OldestAge: 62 * time.Second, Paused: true},
		HeadSince: start, LastDue: start.Add(time.Hour), FirstLeaseEnd: start.Add(62 * time.Second), LastLeaseEnd: start.Add(62 * time.Second),
		FirstAcked: start.Add(2 * time.Second), LastSettled: start.Add(2 * time.Second),
	}}, f.Queues)
	same(t, "the latest stamp", start.Add(2*time.Second), f.LatestStamp)
	after, err := q.Stats(ctx)
	ok(t, err)
	same(t, "what it changed", before, after)
}

func TestInspectTellsOfTheFile(t *testing.T) {
	dir := t.TempDir()
	works(t, openStore(t, dir))
	st, err := os.Stat(filepath.Join(dir, "localqueue.db"))
	ok(t, err)
	for durability, levels := range map[queue.Durability][2]string{queue.Full: {"full", "full"}, queue.Balanced: {"full", "normal"}, queue.Normal: {"normal", "normal"}} {
		f := inspect(t, dir, queue.WithDurability(durability))
		same(t, "levels of "+string(durability), levels, [2]string{f.SyncedLevel, f.OtherLevel})
		same(t, "journal", "wal", f.Journal)
		same(t, "page size", int64(2048), f.PageSize)
		same(t, "bytes", st.Size(), f.FileBytes)
		same(t, "schema", f.NewestSchema, f.Schema)
		if f.FreeBytes == 0 || f.FileSystem == "" || f.SQLite == "" || f.Pages == 0 || f.WALBytes == 0 || f.WALFrames < f.WALCopied || f.Err != nil || f.WriteErr != nil {
			t.Errorf("facts %+v", f)
		}
		if want := []queue.Opener{{PID: os.Getpid(), Stores: 1}}; runtime.GOOS == "linux" && !cmp.Equal(want, f.Openers) {
			t.Errorf("openers %+v", f.Openers)
		}
	}
}

func TestInspectLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	lived(t, dir)
	path := filepath.Join(dir, "localqueue.db")
	sqliteFile(t, path, "ANALYZE", "UPDATE messages SET lease_until = 1 WHERE status = 1", "UPDATE messages SET available_at = 1 WHERE delayed")
	ok(t, os.Remove(filepath.Join(dir, "localqueue.lock")))
	before := content(t, dir)
	for range 2 {
		f := inspect(t, dir)
		same(t, "what it saw", []any{true, int64(1), int64(0)}, []any{f.Analyzed, f.Queues[0].Expired, f.Queues[0].Delayed})
		same(t, "files", before, content(t, dir))
	}
}

// A WAL that a dead process has left is read, and left as it is.
func TestInspectLeavesAWALThatADeadProcessHasLeft(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	lived(t, dir)
	openStore(t, dir)
	ok(t, second(openStore(t, dir).Default().Put(t.Context(), []byte("in the WAL"))))
	for _, name := range []string{"localqueue.db", "localqueue.db-wal"} { // not in use by this process, but its copies
		copyFile(t, filepath.Join(dir, name), filepath.Join(copied, name))
	}
	before := content(t, copied)
	f := inspect(t, copied)
	same(t, "ready", int64(3), f.Queues[0].Ready)
	ok(t, os.Remove(filepath.Join(copied, "localqueue.db-shm"))) // an index of the WAL, made for the look
	same(t, "files", before, content(t, copied))
}

// copyFile copies in a process of its own: closing a database's file here would drop SQLite's locks.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	ok(t, second(inRole(t, "copy", "FROM="+from, "TO="+to)))
}

func init() {
	roles["copy"] = func() {
		data, err := os.ReadFile(os.Getenv("FROM"))
		if err == nil {
			err = os.WriteFile(os.Getenv("TO"), data, 0o600)
		}
		if err != nil {
			panic(err)
		}
	}
}

func TestInspectDropsNoLocks(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	works(t, s)
	path := filepath.Join(dir, "localqueue.db")
	wal, err := os.Stat(path + "-wal")
	ok(t, err)
	other := startProcess(t)
	for range 3 {
		inspect(t, dir)
		if locksOf(t, path) == 0 || locksOf(t, path+"-shm") == 0 {
			t.Fatal("it dropped the locks of this process")
		}
		other.does("visit", dir)
		now, err := os.Stat(path + "-wal")
		ok(t, err)
		if !os.SameFile(wal, now) {
			t.Fatal("another process took itself for the last one and replaced the WAL")
		}
		works(t, s)
	}
}

func TestInspectWaitsForAFirstOpening(t *testing.T) {
	dir := t.TempDir()
	done := make(chan error)
	go func() {
		s, err := queue.Open(dir)
		if err == nil {
			err = s.Close()
		}
		done <- err
	}()
	for opened := false; !opened; {
		f, err := queue.Inspect(t.Context(), dir)
		switch {
		case err != nil:
			matches(t, err, queue.ErrNoQueue)
		case f.Err != nil || f.Schema != f.NewestSchema && f.Schema != 0:
			t.Errorf("during a first opening it saw %+v", f)
		}
		select {
		case err := <-done:
			ok(t, err)
			opened = true
		default:
		}
	}
	same(t, "errors", error(nil), inspect(t, dir).Err)
}

func TestInspectEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	lived(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := queue.Inspect(ctx, dir)
	matches(t, err, context.Canceled)
}
