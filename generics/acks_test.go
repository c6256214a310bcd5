package generics

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

func TestTheHookIsToldOfAnAckThatIsInTheStore(t *testing.T) {
	q := open[int](t)
	if _, err := q.PutMany(background(t), make([]int, 300)); err != nil {
		t.Fatal(err)
	}
	var told atomic.Int64
	w := drain(t, q, func(context.Context, *Job[int]) error { return nil }, Concurrency(4), OnDone(func(e Event) {
		told.Add(1)
		r, _, err := q.Raw().Show(context.Background(), e.Job.ID)
		if err != nil || r.State != queue.Acked || e.Outcome != Acked {
			t.Errorf("%s: %+v, %v", e.Outcome, r, err)
		}
	}))
	if diff := cmp.Diff(Counts{Acked: 300}, w.Counts()); diff != "" || told.Load() != 300 {
		t.Error(told.Load(), diff)
	}
}

func TestHandlersAtOnceNeverExceedTheConcurrency(t *testing.T) {
	const limit = 3
	q := open[int](t)
	if _, err := q.PutMany(background(t), make([]int, 500)); err != nil {
		t.Fatal(err)
	}
	var now, most atomic.Int64
	full := make(chan struct{})
	w := drain(t, q, func(context.Context, *Job[int]) error {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == limit {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		<-full // all slots are used
		runtime.Gosched()
		return nil
	}, Concurrency(limit))
	if most.Load() != limit || w.Counts().Acked != 500 {
		t.Errorf("%d at once, %+v", most.Load(), w.Counts())
	}
}

func TestASlotGoesOnWhileAnAckIsTriedAgain(t *testing.T) {
	dir, done := t.TempDir(), newEvents()
	q := openDir[int](t, dir, queue.WithBusyTimeout(time.Millisecond))
	if _, err := q.PutMany(background(t), []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	unlocks, second := make(chan func(), 1), make(chan struct{})
	stop := start(t, NewWorker(q, func(_ context.Context, j *Job[int]) error {
		if j.Data == 1 {
			unlocks <- lock(t, dir)
		} else {
			close(second)
		}
		return nil
	}, Concurrency(1), Prefetch(1), done.hook()))
	unlock := receive(t, unlocks)
	receive(t, second)
	if len(done) != 0 {
		t.Error("told of an ack that can't have been stored")
	}
	unlock()
	for range 2 {
		if e := receive(t, done); e.Outcome != Acked || e.Job.Attempt != 1 {
			t.Errorf("%+v", e)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestHeartbeatsRenewJobsThatWaitForTheirAck(t *testing.T) {
	q := open[int](t, queue.WithLease(time.Minute))
	r := testRun(t, q)
	put(t, q, 1)
	h, _ := take(t, q, r)
	short, err := h.job.Extend(background(t), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	r.acks.storing = true // others
	h.conclude(verdict{act: ack, outcome: Acked})
	r.ack(h)
	newKeeper(r).beat()
	if r := record(t, q, h.job.ID); !r.LeaseUntil.After(short) {
		t.Errorf("the lease ends at %v still", r.LeaseUntil)
	}
	r.storeAcks()
	if diff := cmp.Diff(Counts{Acked: 1}, r.counts.read()); diff != "" {
		t.Error(diff)
	}
}

func TestALeaseLostWhileTheAckWaitsMakesTheResultVoid(t *testing.T) {
	q, done := open[int](t), newEvents()
	r := testRun(t, q, done.hook())
	id := put(t, q, 1)
	h, _ := take(t, q, r)
	r.acks.storing = true // others
	h.conclude(verdict{act: ack, outcome: Acked})
	r.ack(h)
	if err := q.Raw().Cancel(background(t), id); err != nil {
		t.Fatal(err)
	}
	newKeeper(r).beat()
	r.storeAcks()
	if e := receive(t, done); e.Outcome != Lost || !errors.Is(e.Err, queue.ErrCancelled) || len(done) != 0 {
		t.Errorf("%+v, and %d more", e, len(done))
	}
}

func TestAcksThatComeWhileTheStoreWorksGoTogetherAndEachHasItsAnswer(t *testing.T) {
	q, done := open[int](t), newEvents()
	r := testRun(t, q, done.hook(), Concurrency(3))
	r.acks.storing = true // others
	var holds []*hold
	for range 3 {
		put(t, q, 1)
		h, _ := take(t, q, r)
		holds = append(holds, h)
	}
	if err := q.Raw().Cancel(background(t), holds[1].job.ID); err != nil {
		t.Fatal(err)
	}
	for _, h := range holds {
		h.conclude(verdict{act: ack, outcome: Acked})
		r.ack(h)
	}
	if len(done) != 0 || len(r.acks.waiting) != 3 {
		t.Errorf("%d are told of, %d wait", len(done), len(r.acks.waiting))
	}
	r.storeAcks()
	for i, h := range holds {
		want, cause := Acked, error(nil)
		if i == 1 {
			want, cause = Lost, queue.ErrCancelled
		}
		if e := receive(t, done); e.Job.ID != h.job.ID || e.Outcome != want || !errors.Is(e.Err, cause) {
			t.Errorf("job %d of 3: %+v", i, e)
		}
	}
	if r.acks.storing || !r.slots.idle() {
		t.Error("it goes on")
	}
}

func TestAnAckWhoseTriesAreEndedIsToldAsLost(t *testing.T) {
	q := open[int](t)
	r := testRun(t, q)
	put(t, q, 1)
	h, _ := take(t, q, r)
	tries := 0
	o, err := settled(r, h, verdict{act: ack, outcome: Acked}, func(context.Context, []*hold) ([]error, error) {
		if tries++; tries == 2 {
			r.cancelSettles() // as a stopping run does when it has waited long enough
		}
		return nil, queue.ErrBusy
	})
	if o != Lost || !errors.Is(err, queue.ErrBusy) || tries != 2 || !r.slots.idle() {
		t.Errorf("%s after %d tries: %v", o, tries, err)
	}
}

func TestOneLeasesEndLeavesTheOthersOfABatchTheirTries(t *testing.T) {
	q, done := open[int](t), newEvents()
	r := testRun(t, q, done.hook(), Concurrency(2))
	put(t, q, 1)
	put(t, q, 2)
	ended, _ := take(t, q, r)
	h, _ := take(t, q, r)
	for _, h := range []*hold{ended, h} {
		h.conclude(verdict{act: ack, outcome: Acked})
	}
	tries := 0
	r.settleAll([]*hold{ended, h}, func(ctx context.Context, holds []*hold) ([]error, error) {
		if tries++; tries == 1 {
			ended.extended(time.Now())
			return nil, queue.ErrBusy
		}
		if e := receive(t, done); e.Outcome != Lost || len(holds) != 1 {
			t.Errorf("%+v; %d jobs are tried again", e, len(holds))
		}
		return r.ackMany(ctx, holds)
	}, nil)
	if e := receive(t, done); e.Outcome != Acked || e.Job.ID != h.job.ID {
		t.Errorf("%+v", e)
	}
}

func TestAHookThatExitsItsGoroutineKeepsNoJobFromItsEnd(t *testing.T) {
	q := open[int](t)
	if _, err := q.PutMany(background(t), make([]int, 50)); err != nil {
		t.Fatal(err)
	}
	w := drain(t, q, func(context.Context, *Job[int]) error { return nil }, OnDone(func(Event) { runtime.Goexit() }))
	if diff := cmp.Diff(Counts{Acked: 50}, w.Counts()); diff != "" {
		t.Error(diff)
	}
}
