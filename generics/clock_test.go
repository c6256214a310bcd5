package generics

import (
	"context"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

func TestABackwardClockStepStallsNeitherPollsNorHeartbeats(t *testing.T) {
	const lease = time.Second
	var c clock
	dir := t.TempDir()
	q := openDir[int](t, dir, queue.WithClock(c.now), queue.WithLease(lease))
	entered, leave := make(chan int, 3), make(chan struct{})
	w := NewWorker(q, func(_ context.Context, j *Job[int]) error {
		entered <- j.Data
		if j.Data == 1 {
			<-leave
		}
		return nil
	}, Concurrency(2), Heartbeat(20*time.Millisecond))
	stop := start(t, w)
	running := put(t, q, 1)
	receive(t, entered)
	if err := q.Raw().Pause(background(t)); err != nil {
		t.Fatal(err)
	}
	put(t, q, 2) // due before the step
	c.step(-time.Hour)
	if err := q.Raw().Resume(background(t)); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, entered); got != 2 {
		t.Errorf("got %d", got)
	}
	put(t, q, 3)
	if got := receive(t, entered); got != 3 {
		t.Errorf("got %d", got)
	}
	eventually(t, "both are acked", func() bool { return stats(t, q).Acked == 2 }) // their leases end with the step
	c.step(time.Hour)                                                              // and the lease is as it was: heartbeats have gone on, so it is not over
	first := record(t, q, running).LeaseUntil
	eventually(t, "a heartbeat has come", func() bool { return record(t, q, running).LeaseUntil.After(first) })
	close(leave)
	if err := stop(); err != nil || w.Counts().Acked != 3 {
		t.Error(err, w.Counts())
	}
}

func TestAForwardClockStepDeliversDelayedJobsOnce(t *testing.T) {
	var c clock
	q := open[int](t, queue.WithClock(c.now), queue.WithLease(24*time.Hour))
	put(t, q, 1, queue.Delay(time.Hour))
	entered := make(chan int, 10)
	stop := start(t, NewWorker(q, func(_ context.Context, j *Job[int]) error { entered <- j.Attempt; return nil }))
	c.step(time.Hour + time.Second)
	began := time.Now()
	if a := receive(t, entered); a != 1 {
		t.Errorf("attempt %d", a)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("delivered after %v", took)
	}
	eventually(t, "the job is acked", func() bool { return stats(t, q).Acked == 1 })
	if err := stop(); err != nil || len(entered) != 0 {
		t.Error(err, len(entered))
	}
}
