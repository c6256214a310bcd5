package generics

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

// Faults that users of such systems have reported, as far as they are a Worker's: see docs/cases.md, which names the tests
// of the other files too.

func TestCase17_AStepForwardEndsARunningHandlersLeaseAndItsResultIsVoid(t *testing.T) {
	var c clock
	q, done := open[int](t, queue.WithClock(c.now), queue.WithLease(time.Minute)), newEvents()
	id := put(t, q, 1)
	entered, cause := make(chan *Job[int], 2), make(chan error, 1)
	stop := start(t, NewWorker(q, func(ctx context.Context, j *Job[int]) error {
		entered <- j
		if j.Attempt == 1 {
			<-ctx.Done()
			cause <- context.Cause(ctx)
		}
		return nil
	}, Concurrency(2), Heartbeat(20*time.Millisecond), done.hook()))
	first := receive(t, entered)
	c.step(time.Hour)
	if err := receive(t, cause); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("the handler's context ended by %v", err)
	}
	if again := receive(t, entered); again.ID != id || again.Attempt != 2 {
		t.Errorf("then came %+v", again)
	}
	c.step(-time.Hour)
	outcomes := map[Outcome]int{}
	for range 2 {
		outcomes[receive(t, done).Outcome]++
	}
	if diff := cmp.Diff(map[Outcome]int{Lost: 1, Acked: 1}, outcomes); diff != "" {
		t.Error(diff)
	}
	if err := first.Ack(background(t)); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("the first receipt, with the clock back: %v", err)
	}
	if err := stop(); err != nil || len(entered) != 0 {
		t.Errorf("%v, %d more executions", err, len(entered))
	}
	if r, h := record(t, q, id), history(t, q, id); r.State != queue.Acked || r.Attempts != 2 || len(h) != 1 || h[0].Outcome != "lease_expired" {
		t.Errorf("%+v %+v", r, h)
	}
}

// A job on its last delivery whose lease a step ends is a dead letter, though its handler still runs.
func TestCase17_AStepForwardOnTheLastDeliveryEndsInTheDeadLetters(t *testing.T) {
	var c clock
	q, done := open[int](t, queue.WithClock(c.now), queue.WithLease(time.Minute)), newEvents()
	id := put(t, q, 1, queue.MaxRetries(0))
	entered := make(chan struct{}, 2)
	stop := start(t, NewWorker(q, func(ctx context.Context, j *Job[int]) error {
		entered <- struct{}{}
		if j.ID == id {
			<-ctx.Done()
		}
		return nil
	}, Heartbeat(20*time.Millisecond), done.hook()))
	receive(t, entered)
	c.step(time.Hour)
	if e := receive(t, done); e.Outcome != Lost {
		t.Errorf("%+v", e)
	}
	eventually(t, "the job is a dead letter", func() bool { return record(t, q, id).State == queue.Failed })
	c.step(-2 * time.Hour)
	put(t, q, 2) // and the Worker goes on
	receive(t, entered)
	if err := stop(); err != nil || len(entered) != 0 {
		t.Errorf("%v, %d more executions", err, len(entered))
	}
	if r := record(t, q, id); r.Reason != queue.LeaseExpired || r.Attempts != 1 {
		t.Errorf("%+v", r)
	}
}

// What a Worker removes by the retention goes by the clock as it is: what a step has stamped ahead is not old.
func TestCase17_AStepBackMakesNoJobOldEnoughForTheRetention(t *testing.T) {
	var c clock
	q := open[int](t, queue.WithClock(c.now))
	r := testRun(t, q)
	if err := q.Raw().KeepAcked(background(t), time.Minute); err != nil {
		t.Fatal(err)
	}
	tidied := func(what string, want int) {
		t.Helper()
		if _, removed, err := r.tidy(background(t)); err != nil || removed != want {
			t.Errorf("%s: %d removed, want %d (%v)", what, removed, want, err)
		}
	}
	put(t, q, 1)
	drain(t, q, func(context.Context, *Job[int]) error { return nil })
	c.step(-time.Hour)
	tidied("after the step back", 0)
	c.step(time.Hour + 2*time.Minute)
	tidied("when the clock is there again", 1)
}
