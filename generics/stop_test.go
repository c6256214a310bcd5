package generics

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

func TestARunWhoseContextHasEndedClaimsNothing(t *testing.T) {
	q := open[int](t)
	id := put(t, q, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := NewWorker(q, func(context.Context, *Job[int]) error { return nil }).Run(ctx); err != nil {
		t.Error(err)
	}
	if r := record(t, q, id); r.Delivery != 0 {
		t.Errorf("%+v", r)
	}
}

func TestStoppingLetsHandlersFinishInTheGracePeriod(t *testing.T) {
	q := open[int](t)
	put(t, q, 1)
	ahead := put(t, q, 2)
	entered, leave := make(chan struct{}), make(chan struct{})
	w := NewWorker(q, func(ctx context.Context, _ *Job[int]) error {
		close(entered)
		<-leave
		return ctx.Err()
	}, Concurrency(1), Prefetch(5))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	receive(t, entered)
	eventually(t, "the second job is claimed", func() bool { return record(t, q, ahead).State == queue.Leased })
	cancel()
	eventually(t, "the job claimed ahead is released", func() bool { return record(t, q, ahead).State == queue.Ready })
	if r := record(t, q, ahead); r.Attempts != 0 || r.Delivery != 1 {
		t.Errorf("%+v", r)
	}
	late := put(t, q, 3)
	close(leave)
	if err := receive(t, ended); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(Counts{Acked: 1, Released: 1}, w.Counts()); diff != "" {
		t.Error(diff)
	}
	if r := record(t, q, late); r.Delivery != 0 {
		t.Error("a job was claimed after the stop")
	}
}

func TestAfterTheGracePeriodErrorsReleaseAndNilAcks(t *testing.T) {
	q := open[error](t).With(noCodec{})
	put(t, q, nil)
	put(t, q, nil)
	unfinished := put(t, q, nil, queue.MaxRetries(0))
	entered := make(chan struct{})
	w := NewWorker(q, func(ctx context.Context, j *Job[error]) error {
		entered <- struct{}{}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrStopped) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		if j.ID == unfinished {
			return Permanent(ctx.Err())
		}
		return nil
	}, Concurrency(3), Grace(0))
	stop := start(t, w)
	for range 3 {
		receive(t, entered)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(Counts{Acked: 2, Released: 1}, w.Counts()); diff != "" {
		t.Error(diff)
	}
	if r := record(t, q, unfinished); r.State != queue.Ready || r.Attempts != 0 || len(history(t, q, unfinished)) != 0 {
		t.Errorf("%+v", r)
	}
}

type noCodec struct{}

func (noCodec) Encode(error) ([]byte, error) { return nil, nil }
func (noCodec) Decode([]byte) (error, error) { return nil, nil }

func TestHeartbeatsGoOnUntilTheLastHandlerIsDone(t *testing.T) {
	const lease = time.Second
	q := open[int](t, queue.WithLease(lease))
	id := put(t, q, 1)
	entered, leave := make(chan struct{}), make(chan struct{})
	w := NewWorker(q, func(context.Context, *Job[int]) error { close(entered); <-leave; return nil })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	receive(t, entered)
	cancel()
	first := record(t, q, id).LeaseUntil
	eventually(t, "more than a lease has passed", func() bool { return record(t, q, id).LeaseUntil.Sub(first) > lease })
	close(leave)
	if err := receive(t, ended); err != nil || w.Counts().Acked != 1 {
		t.Error(err, w.Counts())
	}
}

func TestAHandlerThatIgnoresItsContextDoesNotHoldTheStop(t *testing.T) {
	const lease = 300 * time.Millisecond
	q, done := open[int](t, queue.WithLease(lease)), newEvents()
	id := put(t, q, 1)
	entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w := NewWorker(q, func(context.Context, *Job[int]) error {
		close(entered)
		<-leave
		defer close(left)
		return nil
	}, Grace(time.Millisecond), done.hook())
	stop := start(t, w)
	receive(t, entered)
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > handlerLag+10*time.Second {
		t.Errorf("Run took %v", took)
	}
	if e := receive(t, done); e.Outcome != Abandoned {
		t.Errorf("%+v", e)
	}
	job, err := q.Get(background(t)) // its lease has run out by itself
	if err != nil || job.ID != id || job.Attempt != 2 {
		t.Fatal(job, err)
	}
	close(leave)
	receive(t, left)
	if err := job.Ack(background(t)); err != nil {
		t.Errorf("the late handler touched the next delivery: %v", err)
	}
	if len(done) != 0 {
		t.Error("told of twice")
	}
}

func TestClosingTheStoreEndsRunAndItsHandlers(t *testing.T) {
	q := open[int](t)
	put(t, q, 1)
	entered, cause := make(chan struct{}), make(chan error, 1)
	w := NewWorker(q, func(ctx context.Context, _ *Job[int]) error {
		close(entered)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil
	}, Concurrency(2))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	receive(t, entered)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, cause); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("cause %v", err)
	}
	if err := receive(t, ended); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("Run returned %v", err)
	}
	if w.Counts().Lost != 1 {
		t.Errorf("%+v", w.Counts())
	}
}

func TestClosingTheStoreEndsTheGracePeriod(t *testing.T) {
	q := open[int](t)
	put(t, q, 1)
	entered := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- NewWorker(q, func(ctx context.Context, _ *Job[int]) error {
			close(entered)
			<-ctx.Done()
			return ctx.Err()
		}, Grace(time.Hour)).Run(ctx)
	}()
	receive(t, entered)
	cancel()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, ended); err != nil && !errors.Is(err, queue.ErrClosed) {
		t.Error(err)
	}
}

func TestClosingTheStoreEndsRunWhileAllSlotsAreBusy(t *testing.T) {
	q := open[int](t)
	put(t, q, 1)
	entered := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- NewWorker(q, func(ctx context.Context, _ *Job[int]) error {
			close(entered)
			<-ctx.Done()
			return ctx.Err()
		}, Concurrency(1)).Run(context.Background())
	}()
	receive(t, entered)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, ended); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("Run returned %v", err)
	}
}

func TestAJobClaimedAsTheContextEndedIsReleased(t *testing.T) {
	q := open[int](t)
	id := put(t, q, 1)
	r := testRun(t, q)
	ctx, cancel := context.WithCancel(context.Background())
	job, err := r.next(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if n := r.take(ctx, job); n != 0 {
		t.Errorf("%d jobs taken up", n)
	}
	r.settleAll(r.slots.close(), r.releaseMany, nil)
	if r := record(t, q, id); r.State != queue.Ready || r.Attempts != 0 {
		t.Errorf("%+v", r)
	}
}

func TestStoppingAtAnyMomentLosesNothing(t *testing.T) {
	for round := range 30 {
		q := open[int](t)
		const jobs = 24
		if _, err := q.PutMany(background(t), make([]int, jobs), queue.MaxRetries(0)); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		finished := map[int64]int{}
		stages := make(chan struct{}, jobs)
		w := NewWorker(q, func(ctx context.Context, j *Job[int]) error {
			stages <- struct{}{}
			timer := time.NewTimer(time.Duration(rand.IntN(4000)) * time.Microsecond)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				if rand.IntN(2) == 0 {
					return ctx.Err()
				}
			}
			mu.Lock()
			defer mu.Unlock()
			finished[j.ID]++
			return nil
		}, Concurrency(8), Prefetch(round%4), Grace(time.Duration(rand.IntN(2000))*time.Microsecond))
		stop := start(t, w)
		for range 1 + rand.IntN(jobs) {
			receive(t, stages)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if s := stats(t, q); s.Processing != 0 || s.Acked != int64(len(finished)) || s.Ready != int64(jobs-len(finished)) {
			t.Fatalf("round %d: %+v, %d finished, %+v", round, s, len(finished), w.Counts())
		}
		for id, n := range finished {
			if r := record(t, q, id); n != 1 || r.State != queue.Acked || r.Attempts != 1 {
				t.Errorf("round %d, job %d: finished %d times, %+v", round, id, n, r)
			}
		}
		left, err := q.TryGetMany(background(t), jobs)
		if err != nil && !errors.Is(err, queue.ErrEmpty) || len(left) != jobs-len(finished) {
			t.Fatalf("round %d: %d claimable, %v", round, len(left), err)
		}
		for _, j := range left {
			if j.Attempt != 1 {
				t.Errorf("round %d, job %d: attempt %d", round, j.ID, j.Attempt)
			}
		}
	}
}
