package generics

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

// fastRun is a run of one slot, in which a job's handler has ended at once and the next one's has begun and stays. It has
// claimed what it wants ahead of that.
func fastRun(t *testing.T, q *Queue[int], opts ...WorkerOption) *run {
	t.Helper()
	r := testRun(t, q, append(opts, Concurrency(1))...)
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	r.handle = func(context.Context, *hold) error {
		entered <- struct{}{}
		<-leave
		return nil
	}
	t.Cleanup(func() {
		close(leave)
		receive(t, r.slots.empty)
	})
	put(t, q, 0)
	first, _ := take(t, q, r)
	first.conclude(verdict{act: ack, outcome: Acked})
	if next := r.slots.leave(first); next != nil {
		t.Fatal("a second job was claimed")
	}
	r.settle(first)
	eventually(t, "the first job is done", r.slots.idle)
	if err := r.claim(background(t), r.slots.room()); err != nil {
		t.Fatal(err)
	}
	receive(t, entered)
	return r
}

func TestAWorkerOfShortHandlersClaimsAheadAndGivesBackAtTheStop(t *testing.T) {
	q, done := open[int](t), newEvents()
	if _, err := q.PutMany(background(t), make([]int, 100)); err != nil {
		t.Fatal(err)
	}
	r := fastRun(t, q, done.hook())
	if s := stats(t, q); s.Processing != 1+defaultAhead || r.slots.room() != 0 {
		t.Errorf("%+v, room for %d", s, r.slots.room())
	}
	back := r.slots.close()
	receive(t, done) // the first job's end
	r.settleAll(back, r.releaseMany, nil)
	for range defaultAhead {
		e := receive(t, done)
		if r := record(t, q, e.Job.ID); e.Outcome != Released || r.State != queue.Ready || r.Attempts != 0 || r.Delivery != 1 {
			t.Errorf("%s, %+v", e.Outcome, r)
		}
	}
}

func TestHalfOfWhatMayWaitIsUsedUpBeforeTheNextClaim(t *testing.T) {
	q := open[int](t)
	if _, err := q.PutMany(background(t), make([]int, 100)); err != nil {
		t.Fatal(err)
	}
	r := fastRun(t, q)
	for used := 1; used <= defaultAhead/2; used++ {
		h := r.slots.ahead[0]
		h.conclude(verdict{act: ack, outcome: Acked})
		r.slots.mu.Lock()
		r.slots.ahead = r.slots.ahead[1:] // as if another slot had run it
		r.slots.mu.Unlock()
		r.slots.finish(h)
		if n := r.slots.room(); used < defaultAhead/2 && n != 0 || used == defaultAhead/2 && n != used {
			t.Fatalf("after %d jobs, room for %d", used, n)
		}
	}
	r.settleAll(r.slots.close(), r.releaseMany, nil)
}

func TestJobsBehindAHandlerThatTakesLongAreGivenBack(t *testing.T) {
	q, done := open[int](t), newEvents()
	if _, err := q.PutMany(background(t), make([]int, 10)); err != nil {
		t.Fatal(err)
	}
	r := fastRun(t, q, done.hook())
	first := r.slots.ahead[0].taken
	if back := r.slots.overdue(first.Add(aheadPatience - 1)); len(back) != 0 {
		t.Errorf("%d jobs given back too early", len(back))
	}
	back := r.slots.overdue(first.Add(aheadPatience))
	if len(back) != 9 || r.slots.room() != 0 {
		t.Fatalf("%d jobs given back, room for %d", len(back), r.slots.room())
	}
	receive(t, done) // the first job's end
	r.settleAll(back, r.releaseMany, nil)
	if len(done) != 0 || r.counts.read().Released != 0 {
		t.Error("told of jobs that have not ended")
	}
	for _, h := range back {
		if r := record(t, q, h.job.ID); r.State != queue.Ready || r.Attempts != 0 {
			t.Errorf("%+v", r)
		}
	}
	r.slots.close()
}

func TestAnotherWorkerGetsTheJobsBehindAHandlerThatTakesLong(t *testing.T) {
	q := open[int](t)
	if _, err := q.PutMany(background(t), append([]int{0, 1}, make([]int, 20)...)); err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := NewWorker(q, func(_ context.Context, j *Job[int]) error {
		if j.Data == 1 {
			close(entered)
			<-leave
		}
		return nil
	}, Concurrency(1))
	stop := start(t, slow)
	receive(t, entered)
	done := newEvents()
	other := start(t, NewWorker(q, func(context.Context, *Job[int]) error { return nil }, done.hook()))
	for range 20 {
		if e := receive(t, done); e.Outcome != Acked || e.Job.Attempt != 1 {
			t.Errorf("%+v", e)
		}
	}
	close(leave)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := other(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(Counts{Acked: 2}, slow.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestAJobOnItsLastDeliveryNeverWaits(t *testing.T) {
	q := open[int](t)
	if _, err := q.PutMany(background(t), make([]int, 5)); err != nil {
		t.Fatal(err)
	}
	last := put(t, q, 1, queue.MaxRetries(0))
	r := fastRun(t, q)
	eventually(t, "it is given back", func() bool { return record(t, q, last).State == queue.Ready })
	if s := stats(t, q); s.Processing != 5 || r.slots.room() != 0 {
		t.Errorf("%+v, room for %d", s, r.slots.room())
	}
	r.settleAll(r.slots.close(), r.releaseMany, nil)
}

func TestHowFarAheadAWorkerClaims(t *testing.T) {
	run := func(p pace, took ...time.Duration) int {
		for _, d := range took {
			p.ran(d)
		}
		return p.ahead()
	}
	again := func(p pace, jobs int) int {
		p.claimed(&queue.Job{Attempt: 2, MaxAttempts: 4})
		for range jobs {
			p.ran(0)
		}
		return p.ahead()
	}
	usual := pace{limit: 8, most: defaultAhead, mean: -1}
	for name, c := range map[string]struct{ got, want int }{
		"before anything has run":             {run(usual), 0},
		"handlers that take no time":          {run(usual, 0), defaultAhead},
		"1 ms each":                           {run(usual, time.Millisecond), defaultAhead},
		"40 ms each":                          {run(usual, 40*time.Millisecond), 10},
		"10 ms each, one at a time":           {run(pace{limit: 1, most: defaultAhead, mean: -1}, 10*time.Millisecond), 5},
		"longer than the span":                {run(usual, aheadSpan+1), 0},
		"an hour":                             {run(usual, time.Hour), 0},
		"a long one among short ones":         {run(usual, 0, 0, time.Hour), 0},
		"none wanted":                         {run(newPace(config{concurrency: 8, aheadSet: true}), 0), 0},
		"a number wanted":                     {run(newPace(config{concurrency: 8, aheadSet: true, ahead: 3}), time.Hour), 3},
		"without heartbeats":                  {run(newPace(config{concurrency: 8, ahead: defaultAhead, heartbeatOff: true}), 0), 0},
		"a number wanted, without heartbeats": {run(newPace(config{concurrency: 8, aheadSet: true, ahead: 3, heartbeatOff: true}), 0), 3},
		"a job comes again":                   {again(usual, carefulFor-1), 0},
		"long after a job came again":         {again(usual, carefulFor), defaultAhead},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}

func TestAWorkerOfSlowHandlersLeavesTheOthersToOtherWorkers(t *testing.T) {
	q := open[int](t)
	if _, err := q.PutMany(background(t), make([]int, 10)); err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	slow := NewWorker(q, func(context.Context, *Job[int]) error { entered <- struct{}{}; <-leave; return nil }, Concurrency(2))
	stop := start(t, slow)
	receive(t, entered)
	receive(t, entered)
	w := drain(t, q, func(context.Context, *Job[int]) error { return nil })
	close(leave)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if w.Counts() != (Counts{Acked: 8}) || slow.Counts() != (Counts{Acked: 2}) {
		t.Errorf("%+v, the slow one %+v", w.Counts(), slow.Counts())
	}
}
