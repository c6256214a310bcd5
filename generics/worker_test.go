package generics

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

// drain runs a Worker until the queue is empty.
func drain[T any](t *testing.T, q *Queue[T], handler Handler[T], opts ...WorkerOption) *Worker[T] {
	t.Helper()
	w := NewWorker(q, handler, append([]WorkerOption{UntilEmpty()}, opts...)...)
	if err := w.Run(background(t)); err != nil {
		t.Fatal(err)
	}
	return w
}

func at(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func TestHandlersThatReturnNilAckTheirJobs(t *testing.T) {
	q := open[int](t)
	if _, err := q.PutMany(background(t), []int{1, 2, 3, 4, 5, 6, 7, 8, 9}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []int
	w := drain(t, q, func(_ context.Context, j *Job[int]) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, j.Data)
		return nil
	}, Concurrency(3), Prefetch(2))
	slices.Sort(got)
	if diff := cmp.Diff([]int{1, 2, 3, 4, 5, 6, 7, 8, 9}, got); diff != "" {
		t.Error(diff)
	}
	if s := stats(t, q); s.Acked != 9 || s.Processing != 0 {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff(Counts{Acked: 9}, w.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestTheHandlersErrorDecidesWhatBecomesOfTheJob(t *testing.T) {
	listed := errors.New("no such customer")
	wrapped := func(err error) error { return errors.Join(errors.New("while deploying"), err) }
	for name, c := range map[string]struct {
		result  error
		outcome Outcome
		state   queue.State
		reason  queue.Reason
		text    string // that the job's error must have in it
		left    int    // attempts used
		delay   time.Duration
	}{
		"an error":              {errors.New("timeout"), Nacked, queue.Delayed, "", "timeout", 1, time.Hour},
		"a permanent error":     {wrapped(Permanent(errors.New("gone"))), Failed, queue.Failed, queue.Permanent, "gone", 1, 0},
		"a listed error":        {wrapped(listed), Failed, queue.Failed, queue.Permanent, "no such customer", 1, 0},
		"snooze":                {wrapped(Snooze(2 * time.Hour)), Released, queue.Delayed, "", "", 0, 2 * time.Hour},
		"retry after":           {wrapped(RetryAfter(3*time.Hour, errors.New("limit"))), Nacked, queue.Delayed, "", "limit", 1, 3 * time.Hour},
		"retry long after":      {RetryAfter(1<<63-1, errors.New("limit")), Nacked, queue.Delayed, "", "limit", 1, maxDelay},
		"snooze into the past":  {Snooze(-time.Hour), Released, queue.Ready, "", "", 0, 0},
		"permanent nil":         {Permanent(nil), Acked, queue.Acked, "", "", 1, 0},
		"retry after nil":       {RetryAfter(time.Hour, nil), Acked, queue.Acked, "", "", 1, 0},
		"an error that panics":  {(*brokenError)(nil), Nacked, queue.Delayed, "", "brokenError", 1, time.Hour},
		"an error of no length": {errors.New(""), Nacked, queue.Delayed, "", "", 1, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			q, done := open[int](t), newEvents()
			id := put(t, q, 1)
			ctx, cancel := context.WithCancel(background(t))
			w := NewWorker(q, func(context.Context, *Job[int]) error { return c.result }, Backoff(at(time.Hour)), PermanentErrors(listed), done.hook(),
				OnDone(func(Event) { cancel() }), Concurrency(1))
			if err := w.Run(ctx); err != nil {
				t.Fatal(err)
			}
			e := receive(t, done)
			if e.Outcome != c.outcome || e.Job.ID != id {
				t.Errorf("outcome %s of job %d", e.Outcome, e.Job.ID)
			}
			r := record(t, q, id)
			if r.State != c.state || r.Reason != c.reason || r.Attempts != c.left || !strings.Contains(r.LastError, c.text) {
				t.Errorf("state %s, reason %q, attempts %d, error %q", r.State, r.Reason, r.Attempts, r.LastError)
			}
			if d := r.AvailableAt.Sub(r.UpdatedAt); c.delay > 0 && d != c.delay {
				t.Errorf("delay %v", d)
			}
		})
	}
}

type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func TestTheLastDeliverysErrorSendsAJobToTheDeadLetters(t *testing.T) {
	q, done := open[int](t), newEvents()
	id := put(t, q, 1, queue.MaxRetries(2))
	w := drain(t, q, func(context.Context, *Job[int]) error { return errors.New("no") }, Backoff(at(0)), done.hook())
	if diff := cmp.Diff(Counts{Nacked: 2, Failed: 1}, w.Counts()); diff != "" {
		t.Error(diff)
	}
	if r := record(t, q, id); r.State != queue.Failed || r.Reason != queue.RetriesExhausted || r.Attempts != 3 {
		t.Errorf("%+v", r)
	}
}

// Retried from the dead letters, a job has all its deliveries again, and its history shows both rounds.
func TestARetriedJobDiesAfterItsDeliveriesAgain(t *testing.T) {
	q := open[int](t)
	id := put(t, q, 1, queue.MaxRetries(1))
	for round := range 2 {
		var attempts []int
		drain(t, q, func(_ context.Context, j *Job[int]) error {
			attempts = append(attempts, j.Attempt)
			return errors.New("no")
		}, Backoff(at(0)), Concurrency(1))
		if diff := cmp.Diff([]int{1, 2}, attempts); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
		if round == 0 {
			if err := q.Raw().RetryFailed(background(t), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d := history(t, q, id); len(d) != 4 {
		t.Errorf("%d deliveries in the history", len(d))
	}
}

func TestPanicsUseUpDeliveriesAndLeaveTheSlotAlive(t *testing.T) {
	ctx, q := background(t), open[string](t)
	ways := []string{"panic", "nil", "goexit", "error", "stringer"}
	for i := range 10 {
		put(t, q, ways[i%len(ways)], queue.MaxRetries(1))
		put(t, q, "good")
	}
	w := drain(t, q, func(_ context.Context, j *Job[string]) error {
		switch j.Data {
		case "panic":
			panic("hull breach")
		case "nil":
			panic(nil)
		case "goexit":
			runtime.Goexit()
		case "error":
			panic(errors.New("an error value"))
		case "stringer":
			panic(panicky{})
		}
		return nil
	}, Concurrency(2), Backoff(at(0)))
	if diff := cmp.Diff(Counts{Acked: 10, Panicked: 20}, w.Counts()); diff != "" {
		t.Error(diff)
	}
	page, err := q.ListFailed(ctx, queue.ListOptions{})
	if err != nil || len(page.Jobs) != 10 {
		t.Fatal(len(page.Jobs), err)
	}
	for _, f := range page.Jobs {
		if f.Reason != queue.Panicked || f.Attempts != 2 || !strings.HasPrefix(f.LastError, "panic: ") ||
			!strings.Contains(f.LastError, "worker_test.go") || len(f.LastError) > 8<<10 {
			t.Errorf("%s: reason %s, attempts %d, error %q", f.Data, f.Reason, f.Attempts, f.LastError)
		}
		for _, d := range history(t, q, f.ID) {
			if d.Outcome != "panic" {
				t.Errorf("%s: %+v", f.Data, d)
			}
		}
	}
}

type panicky struct{}

func (panicky) String() string { panic("again") }

func TestALongPanicKeepsItsStack(t *testing.T) {
	text := panicText(&PanicError{Value: strings.Repeat("é", 10_000), Stack: []byte("the stack")})
	if len(text) > maxErrorText || !strings.Contains(text, "the stack") {
		t.Errorf("%d bytes: %q", len(text), text[len(text)-40:])
	}
}

func TestUndecodableJobsDoNotStopAWorker(t *testing.T) {
	ctx, q, done := background(t), open[deploy](t), newEvents()
	for _, payload := range []string{`{"App":NaN}`, `{"App":"web"}`, `]`} {
		if _, err := q.Raw().Put(ctx, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	w := drain(t, q, func(context.Context, *Job[deploy]) error { return nil }, done.hook(), Concurrency(1))
	if diff := cmp.Diff(Counts{Acked: 1, Failed: 2}, w.Counts()); diff != "" {
		t.Error(diff)
	}
	var bad *DecodeError
	if e := receive(t, done); !errors.As(e.Err, &bad) {
		t.Errorf("the hook was told %v", e.Err)
	}
	page, err := q.ListFailed(ctx, queue.ListOptions{})
	if err != nil || len(page.Jobs) != 2 || page.Jobs[0].Reason != queue.InvalidPayload || string(page.Jobs[0].Payload) != `{"App":NaN}` {
		t.Errorf("%+v, %v", page.Jobs, err)
	}
}

func TestADecodeErrorThatAHandlerReturnsIsAnOrdinaryError(t *testing.T) {
	q := open[int](t)
	id := put(t, q, 1, queue.MaxRetries(0))
	drain(t, q, func(context.Context, *Job[int]) error {
		return &DecodeError{Queue: "other", ID: 7, Err: errors.New("x")}
	})
	if r := record(t, q, id); r.Reason != queue.RetriesExhausted {
		t.Errorf("reason %s", r.Reason)
	}
}

func TestAHandlerMaySettleItsJobItself(t *testing.T) {
	var q *Queue[int]
	inTx := func(ctx context.Context, j *Job[int], end error) error {
		return q.Raw().Store().Tx(ctx, func(tx *queue.Tx) error { return errors.Join(j.AckTx(ctx, tx), end) })
	}
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		handler Handler[int]
		outcome Outcome
		state   queue.State
	}{
		"ack":          {func(ctx context.Context, j *Job[int]) error { return j.Ack(ctx) }, Acked, queue.Acked},
		"ack, error":   {func(ctx context.Context, j *Job[int]) error { return errors.Join(j.Ack(ctx), boom) }, Acked, queue.Acked},
		"nack":         {func(ctx context.Context, j *Job[int]) error { return j.Nack(ctx, boom, queue.Delay(time.Hour)) }, Nacked, queue.Delayed},
		"fail":         {func(ctx context.Context, j *Job[int]) error { return j.Fail(ctx, boom) }, Failed, queue.Failed},
		"release":      {func(ctx context.Context, j *Job[int]) error { return j.Release(ctx, queue.Delay(time.Hour)) }, Released, queue.Delayed},
		"ack, raw":     {func(ctx context.Context, j *Job[int]) error { return j.Job.Ack(ctx) }, Settled, queue.Acked},
		"tx":           {func(ctx context.Context, j *Job[int]) error { return inTx(ctx, j, nil) }, Acked, queue.Acked},
		"tx, error":    {func(ctx context.Context, j *Job[int]) error { return errors.Join(inTx(ctx, j, nil), boom) }, Acked, queue.Acked},
		"rolled back":  {func(ctx context.Context, j *Job[int]) error { _ = inTx(ctx, j, boom); return nil }, Acked, queue.Acked},
		"rolled back!": {func(ctx context.Context, j *Job[int]) error { return inTx(ctx, j, boom) }, Nacked, queue.Delayed},
		"ack with": {func(ctx context.Context, j *Job[int]) error {
			return j.AckWith(ctx, func(*queue.Tx) error { return nil })
		}, Acked, queue.Acked},
		"ack with, undone": {func(ctx context.Context, j *Job[int]) error {
			return j.AckWith(ctx, func(*queue.Tx) error { return boom })
		}, Nacked, queue.Delayed},
		"ack, panic": {func(ctx context.Context, j *Job[int]) error { _ = j.Ack(ctx); panic("after it") }, Acked, queue.Acked},
	} {
		t.Run(name, func(t *testing.T) {
			done := newEvents()
			q = open[int](t)
			id := put(t, q, 1)
			drain(t, q, c.handler, done.hook(), Backoff(at(time.Hour)))
			if e := receive(t, done); e.Outcome != c.outcome {
				t.Errorf("outcome %s, %v", e.Outcome, e.Err)
			}
			if r := record(t, q, id); r.State != c.state {
				t.Errorf("state %s", r.State)
			}
		})
	}
}

func TestAnAckInATransactionIsNoLossWhereAckedJobsAreNotKept(t *testing.T) {
	ctx, q := background(t), open[int](t)
	if err := q.Raw().KeepAcked(ctx, 0); err != nil {
		t.Fatal(err)
	}
	put(t, q, 1)
	w := drain(t, q, func(ctx context.Context, j *Job[int]) error {
		return q.Raw().Store().Tx(ctx, func(tx *queue.Tx) error { return j.AckTx(ctx, tx) })
	})
	if diff := cmp.Diff(Counts{Acked: 1}, w.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestAWorkerRunsOnceAtATimeAndAgainAfterwards(t *testing.T) {
	q := open[int](t)
	entered, leave := make(chan struct{}), make(chan struct{})
	w := NewWorker(q, func(context.Context, *Job[int]) error { entered <- struct{}{}; <-leave; return nil })
	put(t, q, 1)
	stop := start(t, w)
	receive(t, entered)
	if err := w.Run(background(t)); !errors.Is(err, ErrRunning) {
		t.Error(err)
	}
	close(leave)
	if err := stop(); err != nil {
		t.Error(err)
	}
	put(t, q, 2)
	stop = start(t, w)
	receive(t, entered)
	if err := stop(); err != nil || w.Counts().Acked != 2 {
		t.Error(err, w.Counts())
	}
}
