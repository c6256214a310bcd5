package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

func beginImport(t testing.TB, s *queue.Store, opts queue.ImportOptions) *queue.Import {
	t.Helper()
	im, err := s.BeginImport(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// bring imports jobs in one batch, whose mark is their number.
func bring(t testing.TB, im *queue.Import, jobs ...queue.Archived) queue.Imported {
	t.Helper()
	for _, job := range jobs {
		if _, err := im.Add(job); err != nil {
			t.Fatal(err)
		}
	}
	n := im.Mark().Lines + int64(len(jobs))
	res, err := im.Commit(t.Context(), queue.Mark{Lines: n, Digest: fmt.Sprint(n)})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func isSound(t testing.TB, s *queue.Store) {
	t.Helper()
	found, err := s.Check(t.Context(), false)
	if err != nil || len(found) > 0 {
		t.Fatalf("check: %v, %v", found, err)
	}
}

func idRange(t *testing.T, s *queue.Store) queue.IDRange {
	t.Helper()
	r, err := s.IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// minimal is a job as a line from elsewhere may bring it.
func minimal(payload string) queue.Archived {
	return queue.Archived{Record: queue.Record{Queue: "default", Payload: []byte(payload)}}
}

func TestAnImportedJobIsWhatItWas(t *testing.T) {
	clock := &fakeClock{}
	clock.set(start)
	from, to := queuetest.Open(t, queue.WithClock(clock.now)), queuetest.Open(t, queue.WithClock(clock.now))
	everyState(t, from)
	want := exported(t, from, queue.ExportOptions{})
	stats, err := from.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var settings []queue.QueueSettings
	for _, q := range stats {
		settings = append(settings, queue.QueueSettings{Queue: q.Queue, Paused: q.Paused, KeepAcked: q.KeepAcked})
	}
	im := beginImport(t, to, queue.ImportOptions{Name: "whole", Settings: settings, IDs: idRange(t, from)})
	if res := bring(t, im, want...); res != (queue.Imported{Stored: len(want)}) || !im.KeepsIDs() {
		t.Errorf("%+v, ids kept: %v", res, im.KeepsIDs())
	}
	if diff := cmp.Diff(want, exported(t, to, queue.ExportOptions{})); diff != "" {
		t.Errorf("jobs (-exported +imported):\n%s", diff)
	}
	if got, err := to.Queues(t.Context()); err != nil || !cmp.Equal(stats, got) {
		t.Errorf("stats (%v):\n%s", err, cmp.Diff(stats, got))
	}
	if got := idRange(t, to); got != idRange(t, from) {
		t.Errorf("ids %+v", got)
	}
	isSound(t, to)

	mapped := queuetest.Open(t, queue.WithClock(clock.now), queue.InlinePayloads())
	if _, err := mapped.Default().Put(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	im = beginImport(t, mapped, queue.ImportOptions{Name: "whole", Settings: settings, IDs: idRange(t, from)})
	bring(t, im, want...)
	got := exported(t, mapped, queue.ExportOptions{})[1:]
	for i := range got {
		if got[i].ID != int64(i)+2 {
			t.Errorf("the new id of job %d is %d", want[i].ID, got[i].ID)
		}
		if got[i].State == queue.Leased && got[i].Receipt == want[i].Receipt {
			t.Error("a receipt holds a job of another id")
		}
		got[i].ID, got[i].Receipt = want[i].ID, want[i].Receipt
	}
	if diff := cmp.Diff(want, got); diff != "" || im.KeepsIDs() {
		t.Errorf("jobs with new ids (-exported +imported):\n%s", diff)
	}
	isSound(t, mapped)
}

func TestAnImportedLeaseIsItsHoldersOrNobodys(t *testing.T) {
	clock := &fakeClock{}
	clock.set(start)
	from := queuetest.Open(t, queue.WithClock(clock.now))
	if _, err := from.Default().Put(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	held, err := from.Default().TryGet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jobs := exported(t, from, queue.ExportOptions{})

	kept := queuetest.Open(t, queue.WithClock(clock.now))
	bring(t, beginImport(t, kept, queue.ImportOptions{Name: "x", IDs: idRange(t, from)}), jobs...)
	if err := kept.Default().Ack(t.Context(), held.ID, held.Receipt); err != nil {
		t.Errorf("its holder can't settle it where its id is kept: %v", err)
	}

	mapped := queuetest.Open(t, queue.WithClock(clock.now))
	bring(t, beginImport(t, mapped, queue.ImportOptions{Name: "x"}), jobs...)
	if err := mapped.Default().Ack(t.Context(), 1, held.Receipt); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("with another id, the receipt settles it: %v", err)
	}
	if _, err := mapped.Default().TryGet(t.Context()); !errors.Is(err, queue.ErrEmpty) {
		t.Errorf("it is delivered before its lease ends: %v", err)
	}
	clock.set(held.LeaseUntil)
	again, err := mapped.Default().TryGet(t.Context())
	if err != nil || again.Attempt != 2 || again.Delivery != 2 {
		t.Fatalf("after the lease: %+v, %v", again, err)
	}
	_, story, err := mapped.Default().Show(t.Context(), again.ID)
	if err != nil || len(story) != 1 || story[0].Outcome != "lease_expired" || story[0].Number != 1 {
		t.Errorf("history %+v, %v", story, err)
	}
}

func TestIDsAreKeptOnlyWhereNoneOfThemWasGiven(t *testing.T) {
	job := minimal("x")
	job.ID = 7
	for _, tt := range []struct {
		name string
		puts int // and removed again
		left int
		ids  queue.IDRange
		keep bool
	}{
		{"a new file", 0, 0, queue.IDRange{First: 5, Last: 9}, true},
		{"no ids in the input", 0, 0, queue.IDRange{}, false},
		{"an emptied file that has given lower ids", 4, 0, queue.IDRange{First: 5, Last: 9}, true},
		{"an emptied file that has given one of them", 5, 0, queue.IDRange{First: 5, Last: 9}, false},
		{"a file with a job", 1, 1, queue.IDRange{First: 5, Last: 9}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := queuetest.Open(t)
			for i := range tt.puts {
				res, err := s.Default().Put(t.Context(), nil)
				if err == nil && i >= tt.left {
					err = s.Default().Delete(t.Context(), res.ID)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			im := beginImport(t, s, queue.ImportOptions{Name: "x", IDs: tt.ids})
			bring(t, im, job)
			res, err := s.Default().Put(t.Context(), []byte("next"))
			if err != nil {
				t.Fatal(err)
			}
			all := ids(exported(t, s, queue.ExportOptions{}))
			want := []int64{7, 10} // a new job comes after all ids of the input, also those to come
			if !tt.keep {
				want = []int64{int64(tt.puts) + 1, int64(tt.puts) + 2}
			}
			if got := all[tt.left:]; !slices.Equal(got, want) || res.ID != want[1] || im.KeepsIDs() != tt.keep {
				t.Errorf("ids %v, want %v; kept: %v", got, want, im.KeepsIDs())
			}
			isSound(t, s)
		})
	}
}

func TestAnImportNeverDoublesAKey(t *testing.T) {
	s := queuetest.Open(t)
	q := s.Default()
	for _, key := range []string{"live", "finished"} {
		if _, err := q.Put(t.Context(), []byte(key), queue.JobID(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Cancel(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Put(t.Context(), nil, queue.JobID("free"), queue.UniqueWhilePending()); err != nil {
		t.Fatal(err)
	}
	if err := q.Cancel(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	keyed := func(queueName, key string, state queue.State, pending bool) queue.Archived {
		job := minimal("imported")
		job.Queue, job.JobID, job.State, job.Pending = queueName, key, state, pending
		return job
	}
	im := beginImport(t, s, queue.ImportOptions{Name: "x"})
	res := bring(t, im,
		keyed("default", "live", queue.Ready, false),     // held
		keyed("default", "live", queue.Acked, false),     // held, and would hold it
		keyed("default", "live", queue.Acked, true),      // gives it up: stored
		keyed("default", "finished", queue.Ready, false), // held as long as the row is there
		keyed("default", "free", queue.Ready, true),      // its finished holder has given it up: stored
		keyed("default", "free", queue.Ready, true),      // held by now, by the line before
		keyed("another", "live", queue.Ready, false),     // another queue: stored
	)
	if res != (queue.Imported{Stored: 3, Duplicates: 4}) {
		t.Errorf("%+v", res)
	}
	isSound(t, s)
}

func TestAnImportGoesOnAtItsMark(t *testing.T) {
	s := queuetest.Open(t)
	opts := queue.ImportOptions{Name: "x", IDs: queue.IDRange{First: 1, Last: 3}}
	numbered := func(id int64) queue.Archived { job := minimal("x"); job.ID = id; return job }
	first := beginImport(t, s, opts)
	bring(t, first, numbered(1))
	if _, err := s.Default().Put(t.Context(), []byte("between")); err != nil {
		t.Fatal(err)
	}
	second := beginImport(t, s, opts)
	if m := second.Mark(); m != (queue.Mark{Lines: 1, Digest: "1"}) || !second.KeepsIDs() {
		t.Fatalf("mark %+v, ids kept: %v", m, second.KeepsIDs())
	}
	bring(t, second, numbered(2), numbered(3))
	if got := ids(exported(t, s, queue.ExportOptions{})); !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Errorf("ids %v", got)
	}
	isSound(t, s)
}

func TestARunThatWasOvertakenStoresNoLineAgain(t *testing.T) {
	s := queuetest.Open(t)
	opts := queue.ImportOptions{Name: "x"}
	first := beginImport(t, s, opts)
	bring(t, first, minimal("1"))
	bring(t, beginImport(t, s, opts), minimal("2"))
	if _, err := first.Add(minimal("2")); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Commit(t.Context(), queue.Mark{Lines: 2, Digest: "2"}); !errors.Is(err, queue.ErrImportMoved) {
		t.Errorf("a run that was overtaken: %v", err)
	}
	if got := len(exported(t, s, queue.ExportOptions{})); got != 2 {
		t.Errorf("%d jobs", got)
	}
	isSound(t, s)
}

func TestAnImportGivesNewIDsWhereOthersPutJobsAsItBegins(t *testing.T) {
	s := queuetest.Open(t)
	ready, leased := minimal("x"), minimal("leased")
	ready.ID, leased.ID = 1, 2
	leased.State, leased.Attempts, leased.MaxAttempts, leased.LeaseUntil, leased.Receipt = queue.Leased, 1, 4, time.Now().Add(time.Hour), "1-x"
	im := beginImport(t, s, queue.ImportOptions{Name: "x", IDs: queue.IDRange{First: 1, Last: 3}})
	for _, job := range []queue.Archived{ready, leased} {
		if _, err := im.Add(job); err != nil {
			t.Fatal(err)
		}
	}
	// An id is given meanwhile, and free again: it must not be given twice.
	res, err := s.Default().Put(t.Context(), nil)
	if err == nil {
		err = s.Default().Delete(t.Context(), res.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	bring(t, im)
	again := minimal("third")
	again.ID = 3
	bring(t, im, again)
	got := exported(t, s, queue.ExportOptions{})
	if !slices.Equal(ids(got), []int64{2, 3, 4}) || im.KeepsIDs() {
		t.Fatalf("ids %v, kept: %v", ids(got), im.KeepsIDs())
	}
	if got[1].State != queue.Leased || got[1].Receipt == "1-x" || got[1].Receipt == "" {
		t.Errorf("a receipt holds a job of another id: %+v", got[1])
	}
	isSound(t, s)
}

func TestIDsAreKeptOnlyWhereThereIsRoomForMore(t *testing.T) {
	const most = 1 << 52
	for last, keeps := range map[int64]bool{most: true, most + 1: false, 1<<53 - 1: false} {
		from, job := queuetest.Open(t), minimal("x")
		job.ID = last
		im := beginImport(t, from, queue.ImportOptions{Name: "x", IDs: queue.IDRange{First: last, Last: last}})
		bring(t, im, job)
		if im.KeepsIDs() != keeps {
			t.Errorf("%d: ids kept %v", last, !keeps)
		}
		// What comes after it can be exported and imported too.
		if _, err := from.Default().Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		to := queuetest.Open(t)
		bring(t, beginImport(t, to, queue.ImportOptions{Name: "y", IDs: idRange(t, from)}), exported(t, from, queue.ExportOptions{})...)
		if got := exported(t, to, queue.ExportOptions{}); len(got) != 2 {
			t.Errorf("%d: %d jobs", last, len(got))
		}
	}
}

func TestAnImportRemembersTheQueueOfJobsThatNameNone(t *testing.T) {
	s := queuetest.Open(t)
	begin := func(q string) (*queue.Import, error) {
		return s.BeginImport(t.Context(), queue.ImportOptions{Name: "x", Queue: q})
	}
	unnamed := minimal("unnamed")
	unnamed.Queue = ""
	bring(t, beginImport(t, s, queue.ImportOptions{Name: "x", Queue: "first"}), minimal("named")) // which asks nothing of it
	bring(t, beginImport(t, s, queue.ImportOptions{Name: "x", Queue: "second"}), unnamed)
	for _, q := range []string{"first", ""} {
		if _, err := begin(q); !errors.Is(err, queue.ErrImportQueue) {
			t.Errorf("with the queue %q: %v", q, err)
		}
	}
	bring(t, beginImport(t, s, queue.ImportOptions{Name: "x", Queue: "second"}), minimal("named"), unnamed)
	for name, want := range map[string]int64{"default": 2, "first": 0, "second": 2} {
		if st, err := named(t, s, name).Stats(t.Context()); err != nil || st.Ready != want {
			t.Errorf("%s: %+v, %v; want %d", name, st, err, want)
		}
	}
	if _, err := begin("\x00"); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("a name that none has: %v", err)
	}
}

func TestAnImportWakesAReceiver(t *testing.T) {
	for name, wait := range map[string]time.Duration{"for a ready job": 0, "when a delayed one falls due": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			s := queuetest.Open(t, queue.WithPoll(time.Hour))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			got := make(chan error, 1)
			go func() {
				_, err := s.Default().Get(ctx)
				got <- err
			}()
			for queue.Waiting(s) < 1 {
				if ctx.Err() != nil {
					t.Fatal("the receiver doesn't wait")
				}
				time.Sleep(time.Millisecond)
			}
			job := minimal("x")
			if wait > 0 {
				job.AvailableAt = time.Now().Add(wait)
			}
			bring(t, beginImport(t, s, queue.ImportOptions{Name: "x"}), job)
			if err := <-got; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSettingsOfAQueueThatIsThereStay(t *testing.T) {
	s := queuetest.Open(t)
	if _, err := named(t, s, "known").Put(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	hour := time.Hour
	im := beginImport(t, s, queue.ImportOptions{Name: "x", Settings: []queue.QueueSettings{{Queue: "known", Paused: true}, {Queue: "new", Paused: true, KeepAcked: &hour}}})
	bring(t, im)
	for name, paused := range map[string]bool{"known": false, "new": true} {
		st, err := named(t, s, name).Stats(t.Context())
		if err != nil || st.Paused != paused || (st.KeepAcked != nil) != paused {
			t.Errorf("%s: %+v, %v", name, st, err)
		}
	}
}

func TestABatchIsFullBeforeItTakesLong(t *testing.T) {
	s := queuetest.Open(t, queue.WithDurability(queue.Normal))
	im := beginImport(t, s, queue.ImportOptions{Name: "x"})
	most := 0
	for added, lines := 0, 0; lines < 5000; lines++ {
		full, err := im.Add(minimal("small"))
		if err != nil {
			t.Fatal(err)
		}
		if added++; !full {
			continue
		}
		if _, err := im.Commit(t.Context(), queue.Mark{Lines: int64(lines)}); err != nil {
			t.Fatal(err)
		}
		most, added = max(most, added), 0
	}
	if most < 2 || most > 500 {
		t.Errorf("batches of up to %d jobs", most)
	}
	im = beginImport(t, s, queue.ImportOptions{Name: "y"})
	if full, err := im.Add(minimal(strings.Repeat("x", 1<<20))); err != nil || !full {
		t.Errorf("a large job doesn't fill a batch: %v", err)
	}
}

// A table of another system comes in, in batches. The mark is where a repeat goes on.
func ExampleStore_BeginImport() {
	store, done := exampleStore()
	defer done()
	rows := []string{"a", "b", "c"}
	im, err := store.BeginImport(ctx, queue.ImportOptions{Name: "old queue"})
	check(err)
	mark := im.Mark()
	for _, row := range rows[mark.Lines:] {
		full, err := im.Add(queue.Archived{Record: queue.Record{Queue: "mail", Payload: []byte(row)}})
		check(err)
		mark.Lines++
		if full {
			_, err = im.Commit(ctx, mark)
			check(err)
		}
	}
	_, err = im.Commit(ctx, mark)
	check(err)

	again, err := store.BeginImport(ctx, queue.ImportOptions{Name: "old queue"})
	check(err)
	fmt.Println(again.Mark().Lines, "rows are in")
	// Output: 3 rows are in
}
