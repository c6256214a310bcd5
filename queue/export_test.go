package queue_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

// everyState puts jobs into a Store until there is one in each state, with history, headers, keys of both scopes, and bytes
// that are no text.
func everyState(t *testing.T, s *queue.Store) {
	t.Helper()
	ctx := t.Context()
	jobs, other := s.Default(), named(t, s, "other")
	put := func(q *queue.Queue, payload string, opts ...queue.PutOption) {
		t.Helper()
		if _, err := q.Put(ctx, []byte(payload), opts...); err != nil {
			t.Fatal(err)
		}
	}
	take := func(q *queue.Queue) *queue.Job {
		t.Helper()
		job, err := q.TryGet(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(jobs, "acked", queue.JobID("a"))
	ok(take(jobs).Ack(ctx))
	put(jobs, "acked while pending", queue.JobID("p"), queue.UniqueWhilePending())
	ok(take(jobs).Ack(ctx))
	put(jobs, "failed", queue.MaxRetries(1), queue.Header("trace", "\x01 <ü>"), queue.JobID("p"), queue.UniqueWhilePending())
	ok(take(jobs).Nack(ctx, errors.New("first\nline")))
	ok(take(jobs).Nack(ctx, errors.New("second")))
	put(jobs, "retried", queue.MaxRetries(0))
	job := take(jobs)
	ok(job.Fail(ctx, errors.New("no")))
	ok(jobs.RetryFailed(ctx, job.ID))
	put(jobs, "removed")
	ok(jobs.Delete(ctx, job.ID+1))
	put(jobs, "NaN 12345678901234567890 \xff\x00", queue.Priority(-7), queue.JobID("p"), queue.UniqueWhilePending())
	put(jobs, "", queue.Delay(time.Hour), queue.JobID("d"))
	put(other, string(make([]byte, 5000)), queue.Priority(9))
	put(other, "leased", queue.JobID("a"))
	ok(take(other).Release(ctx))
	take(other)
	ok(other.Pause(ctx))
	ok(named(t, s, "settings only").KeepAcked(ctx, time.Hour))
}

func named(t *testing.T, s *queue.Store, name string) *queue.Queue {
	t.Helper()
	q, err := s.Queue(name)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func exported(t *testing.T, s *queue.Store, opts queue.ExportOptions) (all []queue.Archived) {
	t.Helper()
	for job, err := range s.Export(t.Context(), opts) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, job)
	}
	return all
}

func ids(jobs []queue.Archived) (list []int64) {
	for _, j := range jobs {
		list = append(list, j.ID)
	}
	return list
}

func TestAnExportHasEveryJobAsShowTellsIt(t *testing.T) {
	s := queuetest.Open(t)
	everyState(t, s)
	all := exported(t, s, queue.ExportOptions{})
	seen := map[queue.State]bool{}
	for _, job := range all {
		rec, story, err := named(t, s, job.Queue).Show(t.Context(), job.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(queue.Archived{Record: *rec, History: story}, job); diff != "" {
			t.Errorf("job %d (-shown +exported):\n%s", job.ID, diff)
		}
		seen[job.State] = true
	}
	if want := []int64{1, 2, 3, 4, 6, 7, 8, 9}; !slices.Equal(ids(all), want) || len(seen) != 5 {
		t.Errorf("ids %v, want %v; states %v", ids(all), want, seen)
	}
	if got, err := s.IDs(t.Context()); err != nil || got != (queue.IDRange{First: 1, Last: 9}) {
		t.Errorf("ids in use: %+v, %v", got, err)
	}
}

func TestAnExportTakesOneQueueOrAPartOfTheIDs(t *testing.T) {
	s := queuetest.Open(t)
	everyState(t, s)
	for _, tt := range []struct {
		opts queue.ExportOptions
		want []int64
	}{
		{queue.ExportOptions{Queue: "other"}, []int64{8, 9}},
		{queue.ExportOptions{Queue: "nothing here"}, nil},
		{queue.ExportOptions{After: 4}, []int64{6, 7, 8, 9}},
		{queue.ExportOptions{After: 4, Upto: 7}, []int64{6, 7}},
		{queue.ExportOptions{After: 9}, nil},
		{queue.ExportOptions{Queue: "default", After: 2, Upto: 1 << 60}, []int64{3, 4, 6, 7}},
	} {
		if got := ids(exported(t, s, tt.opts)); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.opts, got, tt.want)
		}
	}
	for _, err := range s.Export(t.Context(), queue.ExportOptions{Queue: "\x00"}) {
		if !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("a name that none has: %v", err)
		}
	}
}

// The pages end by number, by size, and inside the jobs of another queue.
func TestAnExportOfManyPagesHasEveryJobOnce(t *testing.T) {
	s := queuetest.Open(t, queue.WithDurability(queue.Normal))
	var want []int64
	for i := range 12 {
		var batch []queue.NewJob
		for j := range 100 {
			size := 10
			if i == 5 && j%10 == 0 {
				size = 1 << 19
			}
			batch = append(batch, queue.NewJob{Payload: make([]byte, size)})
		}
		q := s.Default()
		if i%4 > 0 {
			q = named(t, s, "filler")
		}
		res, err := q.PutMany(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res {
			if i%4 == 0 {
				want = append(want, r.ID)
			}
		}
	}
	if got := ids(exported(t, s, queue.ExportOptions{Queue: "default"})); !slices.Equal(got, want) {
		t.Errorf("%d jobs of one queue, want %d", len(got), len(want))
	}
	all := ids(exported(t, s, queue.ExportOptions{}))
	if len(all) != 1200 || !slices.IsSorted(all) || len(slices.Compact(all)) != 1200 {
		t.Errorf("%d jobs of all queues, want 1200, each once and in order", len(all))
	}
}

func TestOthersGoOnBetweenTheJobsOfAnExport(t *testing.T) {
	dir := t.TempDir()
	s, err := queue.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	q := s.Default()
	for i := range 450 {
		if _, err := q.Put(t.Context(), fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := openRaw(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	n := 0
	for job, err := range s.Export(t.Context(), queue.ExportOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n > 1 {
			continue
		}
		// The first page is read: what changes in it doesn't show any more, what changes behind it does.
		if _, err := q.Put(t.Context(), []byte("late")); err != nil {
			t.Fatal(err)
		}
		for _, id := range []int64{job.ID, 450} {
			if err := q.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		var busy, frames, copied int
		if err := raw.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied); err != nil || busy != 0 {
			t.Errorf("the export holds the WAL up: busy %d, %v", busy, err)
		}
	}
	if n != 449 {
		t.Errorf("%d jobs, want all but the one that was removed before its page", n)
	}
}

func TestAPageOfAnExportIsBoundedByItsBytes(t *testing.T) {
	s := queuetest.Open(t, queue.WithDurability(queue.Normal))
	for range 4 {
		if _, err := s.Default().Put(t.Context(), make([]byte, 600<<10)); err != nil {
			t.Fatal(err)
		}
	}
	var got []int64
	for job, err := range s.Export(t.Context(), queue.ExportOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, job.ID); len(got) == 1 { // what is not read yet can still be removed
			if err := s.Default().Delete(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []int64{1, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("jobs %v, want %v", got, want)
	}
}

func TestAnExportEndsWithItsContext(t *testing.T) {
	s := queuetest.Open(t)
	everyState(t, s)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Export(ended, queue.ExportOptions{}) {
		if err == nil {
			t.Fatal("a job came")
		}
	}
	for _, err := range s.Export(t.Context(), queue.ExportOptions{}) {
		if err != nil {
			t.Error(err)
		}
		break // leaves nothing behind: see TestMain
	}
}

func TestAFileIsItselfAndABackupToo(t *testing.T) {
	identity := func(s *queue.Store) string {
		t.Helper()
		id, err := s.Identity(t.Context())
		if err != nil || len(id) != 32 {
			t.Fatalf("%q, %v", id, err)
		}
		return id
	}
	s := queuetest.Open(t)
	copied := filepath.Join(t.TempDir(), "copy")
	if _, err := s.Backup(t.Context(), copied, queue.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	first := identity(s)
	if identity(s) != first || identity(queuetest.OpenDir(t, copied, queue.MustExist())) != first {
		t.Error("a file, or its backup, is another one the second time")
	}
	if identity(queuetest.Open(t)) == first {
		t.Error("two files are the same")
	}
}

// A program that keeps what it has read from a file notes which file that was.
func ExampleStore_Identity() {
	store, done := exampleStore()
	defer done()
	id, err := store.Identity(ctx)
	check(err)
	fmt.Println(len(id), "digits")
	// Output: 32 digits
}

func ExampleStore_Export() {
	store, done := exampleStore()
	defer done()
	for _, text := range []string{"a", "b"} {
		_, err := store.Default().Put(ctx, []byte(text))
		check(err)
	}
	for job, err := range store.Export(ctx, queue.ExportOptions{}) {
		check(err)
		fmt.Printf("%d %s %s\n", job.ID, job.State, job.Payload)
	}
	// Output:
	// 1 ready a
	// 2 ready b
}
