package generics

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

func TestConcurrencyBoundsTheHandlersAndPrefetchTheJobsInHand(t *testing.T) {
	q := open[int](t)
	if _, err := q.PutMany(background(t), make([]int, 20)); err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}, 20), make(chan struct{})
	stop := start(t, NewWorker(q, func(context.Context, *Job[int]) error {
		entered <- struct{}{}
		<-leave
		return nil
	}, Concurrency(3), Prefetch(2)))
	for range 3 {
		receive(t, entered)
	}
	eventually(t, "5 jobs are claimed", func() bool { return stats(t, q).Processing == 5 })
	if len(entered) != 0 {
		t.Error("more than 3 handlers run")
	}
	for range 2 {
		leave <- struct{}{}
		receive(t, entered)
	}
	eventually(t, "5 jobs are claimed again", func() bool { s := stats(t, q); return s.Processing == 5 && s.Acked == 2 })
	close(leave)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if s := stats(t, q); s.Processing != 0 {
		t.Errorf("%+v", s)
	}
}

func TestMiddlewareWrapsTheHandlerFirstOutermost(t *testing.T) {
	q := open[string](t)
	put(t, q, "x")
	var order []string
	note := func(name string) func(Handler[string]) Handler[string] {
		return func(next Handler[string]) Handler[string] {
			return func(ctx context.Context, j *Job[string]) error {
				order = append(order, name+j.Data)
				defer func() { order = append(order, "/"+name) }()
				return next(ctx, j)
			}
		}
	}
	drain(t, q, func(context.Context, *Job[string]) error { order = append(order, "h"); return nil },
		Middleware(note("a"), note("b")), Middleware(note("c")))
	if diff := cmp.Diff([]string{"ax", "bx", "cx", "h", "/c", "/b", "/a"}, order); diff != "" {
		t.Error(diff)
	}
}

func TestHooksThatPanicHurtNobody(t *testing.T) {
	q := open[int](t)
	put(t, q, 1, queue.MaxRetries(0))
	put(t, q, 2, queue.MaxRetries(0))
	w := drain(t, q, func(_ context.Context, j *Job[int]) error { return errors.New("no") },
		OnStart(func(j *queue.Job) {
			if j.ID == 2 {
				panic("hook")
			}
		}), OnDone(func(Event) { panic("hook") }), Backoff(func(int) time.Duration { panic("backoff") }))
	if diff := cmp.Diff(Counts{Failed: 1, Panicked: 1}, w.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestAJobTimeoutEndsTheHandlersContext(t *testing.T) {
	q := open[int](t)
	id := put(t, q, 1, queue.MaxRetries(0))
	drain(t, q, func(ctx context.Context, _ *Job[int]) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, JobTimeout(time.Millisecond))
	if r := record(t, q, id); r.LastError != context.DeadlineExceeded.Error() {
		t.Errorf("error %q", r.LastError)
	}
}

func TestUntilEmptyLeavesDelayedJobsAndUntilDrainedDoesNot(t *testing.T) {
	q := open[int](t)
	put(t, q, 1)
	put(t, q, 2, queue.Delay(time.Second))
	ok := func(context.Context, *Job[int]) error { return nil }
	if w := drain(t, q, ok); w.Counts().Acked != 1 {
		t.Errorf("%+v", w.Counts())
	}
	other := openDir[int](t, q.Raw().Store().Dir(), queue.WithLease(200*time.Millisecond))
	put(t, q, 3)
	if _, err := other.Get(background(t)); err != nil { // and never settled
		t.Fatal(err)
	}
	if w := drain(t, q, ok, UntilDrained()); w.Counts().Acked != 2 {
		t.Errorf("%+v", w.Counts())
	}
	if s := stats(t, q); s.Ready+s.Processing != 0 || s.Acked != 3 {
		t.Errorf("%+v", s)
	}
}

func TestUntilEmptySeesWhatTheLastHandlerPut(t *testing.T) {
	q := open[int](t)
	put(t, q, 5)
	w := drain(t, q, func(ctx context.Context, j *Job[int]) error {
		if j.Data == 0 {
			return nil
		}
		_, err := q.Put(ctx, j.Data-1)
		return err
	}, Concurrency(4))
	if w.Counts().Acked != 6 {
		t.Errorf("%+v", w.Counts())
	}
}

func TestBadOptionsAreReportedByRunBeforeAnythingIsClaimed(t *testing.T) {
	q := open[int](t, queue.WithLease(time.Second))
	id := put(t, q, 1)
	ok := func(context.Context, *Job[int]) error { return nil }
	for name, opt := range map[string]WorkerOption{
		"concurrency":       Concurrency(0),
		"prefetch":          Prefetch(-1),
		"prefetch, many":    Prefetch(1001),
		"heartbeat 0":       Heartbeat(0),
		"heartbeat, late":   Heartbeat(time.Second),
		"backoff":           Backoff(nil),
		"permanent":         PermanentErrors(nil),
		"timeout":           JobTimeout(-1),
		"grace":             Grace(-1),
		"middleware":        Middleware[int](nil),
		"another's":         Middleware(func(next Handler[string]) Handler[string] { return next }),
		"start":             OnStart(nil),
		"done":              OnDone(nil),
		"logger":            Logger(nil),
		"concurrency, many": Concurrency(10_001),
	} {
		if err := NewWorker(q, ok, opt, UntilEmpty()).Run(background(t)); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := NewWorker(q, nil).Run(background(t)); !errors.Is(err, queue.ErrInvalid) {
		t.Error(err)
	}
	if err := NewWorker[int](nil, ok).Run(background(t)); !errors.Is(err, queue.ErrInvalid) {
		t.Error(err)
	}
	if r := record(t, q, id); r.Attempts != 0 || r.Delivery != 0 {
		t.Errorf("%+v", r)
	}
}

func TestTheDefaultBackoffGrowsWithinItsBounds(t *testing.T) {
	for attempt := range 100 {
		ceiling := 5 * time.Minute
		if attempt < 9 {
			ceiling = min(ceiling, time.Second<<attempt)
		}
		for range 100 {
			if d := defaultBackoff(attempt); d < time.Second || d > ceiling {
				t.Fatalf("attempt %d: %v", attempt, d)
			}
		}
	}
}
