package generics

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

func TestAnAckThatMeetsABusyFileIsTriedAgainWithoutAnotherExecution(t *testing.T) {
	dir := t.TempDir()
	log, done := newLogbook(), newEvents()
	q := openDir[int](t, dir, queue.WithBusyTimeout(time.Millisecond))
	id := put(t, q, 1)
	var unlock func()
	locked := make(chan struct{})
	stop := start(t, NewWorker(q, func(context.Context, *Job[int]) error {
		unlock = lock(t, dir)
		close(locked)
		return nil
	}, Concurrency(1), Logger(slog.New(log)), done.hook()))
	receive(t, locked)
	receive(t, log.lines) // the first attempt has failed
	unlock()
	if e := receive(t, done); e.Outcome != Acked || e.Job.Attempt != 1 {
		t.Errorf("%+v", e)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if r := record(t, q, id); r.State != queue.Acked || r.Delivery != 1 {
		t.Errorf("%+v", r)
	}
}

func TestAResultThatCannotBeStoredBeforeTheLeaseEndsIsLost(t *testing.T) {
	dir := t.TempDir()
	q := openDir[int](t, dir, queue.WithBusyTimeout(time.Millisecond))
	r := testRun(t, q)
	for _, c := range []struct {
		v     verdict
		store storing
	}{{verdict{act: ack, outcome: Acked}, r.ackMany}, {verdict{act: release, outcome: Released}, r.releaseMany}} {
		put(t, q, 1)
		h, _ := take(t, q, r)
		unlock := lock(t, dir)
		o, err := settled(r, h, c.v, func(ctx context.Context, holds []*hold) ([]error, error) {
			losses, err := c.store(ctx, holds)
			h.extended(time.Now()) // that is, its lease ends with the first attempt
			return losses, err
		})
		if o != Lost || !errors.Is(err, queue.ErrLeaseLost) || !errors.Is(err, queue.ErrBusy) {
			t.Errorf("%s, %v", o, err)
		}
		unlock()
	}
}

func TestAWorkerOutlivesFaultsOfTheStoreAndLogsFewLines(t *testing.T) {
	dir, log := t.TempDir(), newLogbook()
	q := openDir[int](t, dir, queue.WithBusyTimeout(time.Millisecond))
	worked := make(chan struct{}, 1)
	put(t, q, 1)
	unlock := lock(t, dir)
	w := NewWorker(q, func(context.Context, *Job[int]) error { worked <- struct{}{}; return nil }, Logger(slog.New(log)))
	stop := start(t, w)
	first := receive(t, log.lines)
	if first.Level != slog.LevelError {
		t.Errorf("level %v", first.Level)
	}
	for range 20 { // while the Worker's own attempts go on
		if _, err := q.TryGet(background(t)); !errors.Is(err, queue.ErrBusy) {
			t.Errorf("get: %v", err)
		}
	}
	unlock()
	receive(t, worked)
	if err := stop(); err != nil {
		t.Error(err)
	}
	faults := 1
	for len(log.lines) > 0 {
		if l := receive(t, log.lines); l.Level == slog.LevelError {
			faults++
		}
	}
	if faults > 2 {
		t.Errorf("%d lines", faults)
	}
}

func TestAFullDiskIsSurvived(t *testing.T) {
	ctx, log := background(t), newLogbook()
	q := open[string](t)
	limit := func(pages int) {
		t.Helper()
		err := q.Raw().Store().Tx(ctx, func(tx *queue.Tx) error {
			// A pragma takes no parameter.
			rows, err := tx.QueryContext(ctx, map[int]string{0: "PRAGMA max_page_count = 1", 1: "PRAGMA max_page_count = 1000000"}[pages])
			if err != nil {
				return err
			}
			return rows.Close()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, q, "before")
	limit(0) // that is, to what it has now
	var full error
	for range 10_000 {
		if _, full = q.Put(ctx, string(make([]byte, 1500))); full != nil {
			break
		}
	}
	if !errors.Is(full, queue.ErrDiskFull) {
		t.Fatal(full)
	}
	handled := make(chan string, 10_000)
	w := NewWorker(q, func(_ context.Context, j *Job[string]) error {
		handled <- j.Data
		return Permanent(errors.New(string(make([]byte, 8000)))) // needs room
	}, Logger(slog.New(log)), Concurrency(1))
	stop := start(t, w)
	receive(t, handled)
	for {
		if l := receive(t, log.lines); l.Level == slog.LevelError {
			break
		}
	}
	limit(1)
	eventually(t, "the jobs have failed", func() bool { s := stats(t, q); return s.Ready+s.Processing == 0 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if c := w.Counts(); c.Total() != c.Failed {
		t.Errorf("%+v", c)
	}
}

func TestFaultsAreLoggedOncePerPeriod(t *testing.T) {
	log := newLogbook()
	f := newFaults(slog.New(log))
	for range 1000 {
		f.report("x", queue.ErrBusy)
	}
	f.last = f.last.Add(-f.period)
	f.report("x", queue.ErrBusy)
	if len(log.lines) != 2 {
		t.Fatalf("%d lines", len(log.lines))
	}
	receive(t, log.lines)
	omitted := map[string]any{}
	receive(t, log.lines).Attrs(func(a slog.Attr) bool { omitted[a.Key] = a.Value.Any(); return true })
	if diff := cmp.Diff(int64(999), omitted["omitted"]); diff != "" {
		t.Error(diff)
	}
}

func TestAFailedJobIsLoggedAtInfoWithStableKeys(t *testing.T) {
	q, log := open[string](t), newLogbook()
	put(t, q, "secret", queue.MaxRetries(0))
	drain(t, q, func(context.Context, *Job[string]) error { return errors.New("no") }, Logger(slog.New(log)))
	l := receive(t, log.lines)
	keys := map[string]bool{}
	l.Attrs(func(a slog.Attr) bool { keys[a.Key] = true; return true })
	if l.Level != slog.LevelInfo || !keys["job"] || !keys["attempt"] || !keys["err"] {
		t.Errorf("%v %v", l.Level, keys)
	}
}

func TestRunEndsOnTheErrorsThatItIsToldToEndOn(t *testing.T) {
	dir := t.TempDir()
	q := openDir[int](t, dir, queue.WithBusyTimeout(time.Millisecond))
	put(t, q, 1)
	lock(t, dir)
	log := newLogbook()
	err := NewWorker(q, func(context.Context, *Job[int]) error { return nil }, EndOn(queue.ErrBusy), Logger(slog.New(log))).Run(background(t))
	if !errors.Is(err, queue.ErrBusy) {
		t.Errorf("Run: %v, want ErrBusy", err)
	}
}
