package generics

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

// testRun is a run without its loops: tests call the steps.
func testRun[T any](t *testing.T, q *Queue[T], opts ...WorkerOption) *run {
	t.Helper()
	c, err := configure(q.Raw().Lease(), q.Raw().Store().Logger(), opts)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(context.Background(), q.Raw(), c, nil, &counter{})
	t.Cleanup(func() { r.cancelSettles(); r.cancelHandlers(nil) })
	return r
}

// take claims a job as a run does, and gives it a handler's context.
func take[T any](t *testing.T, q *Queue[T], r *run) (*hold, context.Context) {
	t.Helper()
	job, err := q.Raw().TryGet(background(t))
	if err != nil {
		t.Fatal(err)
	}
	h := newHold(job, q.Raw().Store().Now(), q.Raw().Lease())
	r.slots.admit([]*hold{h})
	ctx, cancel := context.WithCancelCause(context.Background())
	t.Cleanup(func() { cancel(nil) })
	h.begin(cancel)
	return h, ctx
}

// settled stores a verdict, by way of store, and returns the end that was told.
func settled(r *run, h *hold, v verdict, store storing) (o Outcome, err error) {
	h.conclude(v)
	r.onDone = append(r.onDone, func(e Event) { o, err = e.Outcome, e.Err })
	r.settleAll([]*hold{h}, store, nil)
	return o, err
}

func TestOneBeatRenewsTheLeasesOfAllJobsInHand(t *testing.T) {
	q := open[int](t, queue.WithLease(time.Minute))
	r := testRun(t, q, Concurrency(2), Prefetch(1))
	var ends []time.Time
	for range 3 {
		put(t, q, 1)
		h, _ := take(t, q, r)
		ends = append(ends, h.job.LeaseUntil)
		if _, err := h.job.Extend(background(t), time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if wait := newKeeper(r).beat(); wait != 20*time.Second {
		t.Errorf("next beat in %v", wait)
	}
	for i, h := range r.slots.all() {
		if r := record(t, q, h.job.ID); r.LeaseUntil.Before(ends[i]) {
			t.Errorf("lease ends at %v, first at %v", r.LeaseUntil, ends[i])
		}
	}
}

func TestAHandlerLongerThanItsLeaseRunsOnceWhileOthersPoll(t *testing.T) {
	const lease = time.Second
	dir := t.TempDir()
	q := openDir[int](t, dir, queue.WithLease(lease))
	id := put(t, q, 1)
	pollers, stopPolling := context.WithCancel(context.Background())
	polled := make(chan error, 4)
	entered, renewed := make(chan struct{}, 10), make(chan struct{})
	stop := start(t, NewWorker(q, func(context.Context, *Job[int]) error {
		entered <- struct{}{}
		<-renewed
		return nil
	}))
	receive(t, entered)
	for range 4 {
		other := openDir[int](t, dir, queue.WithLease(lease))
		go func() {
			_, err := other.Get(pollers)
			polled <- err
		}()
	}
	first := record(t, q, id).LeaseUntil
	eventually(t, "two leases have passed", func() bool { return record(t, q, id).LeaseUntil.Sub(first) > 2*lease })
	close(renewed)
	eventually(t, "the job is acked", func() bool { return stats(t, q).Acked == 1 })
	stopPolling()
	for range 4 {
		if err := receive(t, polled); !errors.Is(err, context.Canceled) {
			t.Errorf("another receiver got the job: %v", err)
		}
	}
	if err := stop(); err != nil || len(entered) != 0 {
		t.Errorf("%v, %d more executions", err, len(entered))
	}
	if r := record(t, q, id); r.Attempts != 1 {
		t.Errorf("%d attempts", r.Attempts)
	}
}

func TestACancelledJobEndsItsHandlerLongBeforeTheNextHeartbeat(t *testing.T) {
	q, done := open[int](t, queue.WithLease(time.Hour)), newEvents()
	id := put(t, q, 1)
	entered, cause := make(chan struct{}), make(chan error, 1)
	stop := start(t, NewWorker(q, func(ctx context.Context, _ *Job[int]) error {
		close(entered)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil
	}, done.hook()))
	receive(t, entered)
	if err := q.Raw().Cancel(background(t), id); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, cause); !errors.Is(err, queue.ErrCancelled) || !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("cause %v", err)
	}
	if e := receive(t, done); e.Outcome != Lost || !errors.Is(e.Err, queue.ErrCancelled) {
		t.Errorf("%+v", e)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if r := record(t, q, id); r.State != queue.Failed || r.Reason != queue.Cancelled {
		t.Errorf("%+v", r)
	}
}

func TestAJobCancelledWhileItWaitsForASlotIsNotRun(t *testing.T) {
	q, done := open[int](t), newEvents()
	r := testRun(t, q, Concurrency(1), Prefetch(1), done.hook())
	r.handle = func(context.Context, *hold) error { t.Error("it was run"); return nil }
	put(t, q, 1)
	ahead := put(t, q, 2)
	first, _ := take(t, q, r)
	jobs, err := r.next(background(t), 1)
	if err != nil || jobs[0].ID != ahead {
		t.Fatal(jobs, err)
	}
	r.take(background(t), jobs)
	if err := q.Raw().Cancel(background(t), ahead); err != nil {
		t.Fatal(err)
	}
	newKeeper(r).beat()
	r.process(r.slots.leave(first))
	if e := receive(t, done); e.Outcome != Lost || !errors.Is(e.Err, queue.ErrCancelled) {
		t.Errorf("%+v", e)
	}
}

func TestALookFindsOnlyTheJobsThatWereTakenAway(t *testing.T) {
	q := open[int](t)
	r := testRun(t, q, Concurrency(2))
	put(t, q, 1)
	put(t, q, 2)
	_, kept := take(t, q, r)
	gone, ended := take(t, q, r)
	k := newKeeper(r)
	if n := k.look(); n != 0 {
		t.Errorf("%d jobs taken away", n)
	}
	if err := q.Raw().Cancel(background(t), gone.job.ID); err != nil {
		t.Fatal(err)
	}
	if n := k.look(); n != 1 {
		t.Errorf("%d jobs taken away", n)
	}
	if !errors.Is(context.Cause(ended), queue.ErrCancelled) || kept.Err() != nil {
		t.Errorf("causes %v, %v", context.Cause(ended), context.Cause(kept))
	}
	if n := k.look(); n != 0 {
		t.Errorf("told again of %d", n)
	}
}

func TestAFailedRenewalIsTriedAgainUntilTheLeaseEnds(t *testing.T) {
	const lease = time.Second
	dir := t.TempDir()
	q := openDir[int](t, dir, queue.WithLease(lease), queue.WithBusyTimeout(time.Millisecond))
	r := testRun(t, q)
	put(t, q, 1)
	h, ctx := take(t, q, r)
	k := newKeeper(r)

	unlock := lock(t, dir)
	if wait := k.beat(); wait > 20*time.Millisecond || ctx.Err() != nil {
		t.Errorf("next attempt in %v, handler's context %v", wait, context.Cause(ctx))
	}
	unlock()
	before := h.end()
	if k.beat(); !h.end().After(before) || ctx.Err() != nil {
		t.Errorf("not renewed: %v", context.Cause(ctx))
	}

	lock(t, dir)
	tries := 0
	for timer := time.NewTimer(0); ctx.Err() == nil; tries++ {
		<-timer.C
		timer.Reset(k.beat())
	}
	if late := time.Since(h.end()); late < 0 || late > 2*time.Second {
		t.Errorf("the handler was ended %v after the lease", late)
	}
	if tries < 3 {
		t.Errorf("%d attempts", tries)
	}
	if err := context.Cause(ctx); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("cause %v", err)
	}
	if wait := k.beat(); wait != k.interval {
		t.Errorf("with nothing to keep, next beat in %v", wait)
	}
}

func TestABlockedRenewalDoesNotKeepTheLossFromTheHandler(t *testing.T) {
	const lease = 200 * time.Millisecond
	dir := t.TempDir()
	q, done := openDir[int](t, dir, queue.WithLease(lease), queue.WithBusyTimeout(time.Minute)), newEvents()
	put(t, q, 1)
	entered, cause := make(chan struct{}), make(chan error, 1)
	stop := start(t, NewWorker(q, func(ctx context.Context, _ *Job[int]) error {
		close(entered)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil
	}, done.hook(), Concurrency(1)))
	receive(t, entered)
	unlock := lock(t, dir)
	began := time.Now()
	if err := receive(t, cause); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("cause %v", err)
	}
	if took := time.Since(began); took > lease+10*time.Second {
		t.Errorf("told after %v", took)
	}
	if e := receive(t, done); e.Outcome != Lost {
		t.Errorf("%+v", e)
	}
	unlock()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if s := stats(t, q); s.Acked != 0 {
		t.Error("the void result was stored")
	}
}

func TestWithoutHeartbeatsTheHandlerEndsWithItsLeaseUnlessItExtendsIt(t *testing.T) {
	q, done := open[bool](t, queue.WithLease(time.Second)), newEvents()
	put(t, q, false, queue.MaxRetries(0))
	put(t, q, true, queue.MaxRetries(0))
	told := make(chan struct{})
	w := drain(t, q, func(ctx context.Context, j *Job[bool]) error {
		if j.Data {
			if _, err := j.Extend(ctx, time.Minute); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-told: // of the other's loss: the lease that both had has ended
			return nil
		}
	}, NoHeartbeat(), done.hook(), OnDone(func(e Event) {
		if e.Outcome == Lost {
			close(told)
		}
	}), Concurrency(2))
	if diff := cmp.Diff(Counts{Acked: 1, Lost: 1}, w.Counts()); diff != "" {
		t.Error(diff)
	}
	if e := receive(t, done); e.Outcome != Lost || !errors.Is(e.Err, queue.ErrLeaseLost) {
		t.Errorf("%+v", e)
	}
}

func TestJobsClaimedAheadAreKeptAliveToo(t *testing.T) {
	const lease = time.Second
	q := open[int](t, queue.WithLease(lease))
	put(t, q, 1)
	ahead := put(t, q, 2)
	leave := make(chan struct{})
	attempts := make(chan int, 2)
	stop := start(t, NewWorker(q, func(_ context.Context, j *Job[int]) error {
		attempts <- j.Attempt
		if j.Data == 1 {
			<-leave
		}
		return nil
	}, Concurrency(1), Prefetch(1)))
	eventually(t, "the second job is claimed", func() bool { return record(t, q, ahead).State == queue.Leased })
	first := record(t, q, ahead).LeaseUntil
	eventually(t, "more than a lease has passed", func() bool { return record(t, q, ahead).LeaseUntil.Sub(first) > lease })
	close(leave)
	for range 2 {
		if a := receive(t, attempts); a != 1 {
			t.Errorf("attempt %d", a)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestASettlementOfTheHandlersOwnIsNoLossToAHeartbeat(t *testing.T) {
	q := open[int](t)
	r := testRun(t, q)
	put(t, q, 1)
	h, ctx := take(t, q, r)
	if err := h.job.Ack(context.Background()); err != nil { // in a way the hold isn't told of
		t.Fatal(err)
	}
	newKeeper(r).beat()
	if ctx.Err() != nil {
		t.Errorf("the handler was ended: %v", context.Cause(ctx))
	}
	if o, err := settled(r, h, verdict{act: ack, outcome: Acked}, r.ackMany); o != Settled || err != nil {
		t.Errorf("%s, %v", o, err)
	}
}
