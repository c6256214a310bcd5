package generics

import (
	"context"
	"errors"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const (
	idleWait   = 100 * time.Millisecond
	mostClaims = 256 // jobs per claim
)

// claimLoop claims jobs as there is room for them. It returns nil when ctx ends or the work that was asked for is done,
// and ErrClosed when the Store is closed.
func (r *run) claimLoop(ctx context.Context) error {
	pause := storePause(50*time.Millisecond, 5*time.Second)
	for n := r.awaitRoom(ctx); n > 0; n = r.awaitRoom(ctx) {
		err := r.claim(ctx, n)
		switch {
		case ctx.Err() != nil, errors.Is(err, errDone):
			return nil
		case errors.Is(err, queue.ErrClosed), matches(err, r.endOn):
			return err
		case err != nil:
			r.faults.report("claiming jobs failed, trying again", err)
			sleep(ctx, pause.NextBackOff())
		default:
			pause.Reset()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return queue.ErrClosed
}

// awaitRoom waits until jobs may be claimed and returns how many. 0 means that the run is over.
func (r *run) awaitRoom(ctx context.Context) int {
	for {
		select {
		case <-ctx.Done():
			return 0
		case <-r.queue.Store().Done():
			return 0
		default:
		}
		if n := r.slots.room(); n > 0 {
			return min(n, mostClaims)
		}
		select {
		case <-ctx.Done():
		case <-r.queue.Store().Done():
		case <-r.slots.wanting:
		}
	}
}

// claim claims up to n jobs and starts them as slots are free.
func (r *run) claim(ctx context.Context, n int) error {
	jobs, err := r.next(ctx, n)
	if err == nil {
		r.take(ctx, jobs)
	}
	return err
}

// take takes up claimed jobs, starts as many as there are free slots, and returns how many it took. If ctx has ended
// meanwhile they only wait to be given back.
func (r *run) take(ctx context.Context, jobs []*queue.Job) int {
	now := r.queue.Store().Now()
	holds := make([]*hold, len(jobs))
	for i, j := range jobs {
		holds[i] = newHold(j, now, r.queue.Lease())
	}
	if ctx.Err() != nil {
		r.slots.queue(holds)
		return 0
	}
	start, back := r.slots.admit(holds)
	for _, h := range start {
		go r.slot(h)
	}
	r.giveBack(back)
	return len(holds)
}

// giveBack releases jobs that shouldn't wait here any longer.
func (r *run) giveBack(holds []*hold) {
	if len(holds) > 0 {
		go r.settleAll(holds, r.releaseMany, nil)
	}
}

// errDone ends a run whose work is done.
var errDone = errors.New("no more jobs")

// next claims up to n jobs: it waits for them, or finds out that there is nothing left to do.
func (r *run) next(ctx context.Context, n int) ([]*queue.Job, error) {
	if r.until == stopped {
		return r.queue.GetMany(ctx, n)
	}
	idle := r.slots.idle() // before the look: what a handler put by its end is then seen
	jobs, err := r.queue.TryGetMany(ctx, n)
	if !errors.Is(err, queue.ErrEmpty) {
		return jobs, err
	}
	if idle {
		done, err := r.done(ctx)
		if err != nil {
			return nil, err
		}
		if done {
			return nil, errDone
		}
	}
	return r.lookOut(ctx, n, idle)
}

// done reports whether a run with nothing to claim and nothing in hand has done its work.
func (r *run) done(ctx context.Context) (bool, error) {
	if r.until == emptied {
		return true, nil
	}
	s, err := r.queue.Stats(ctx)
	return err == nil && s.Ready+s.Processing == 0, err
}

// lookOut waits a while for jobs, at most until nothing is in hand any more, and returns none if none came.
func (r *run) lookOut(ctx context.Context, n int, idle bool) ([]*queue.Job, error) {
	short, cancel := context.WithTimeout(ctx, idleWait)
	defer cancel()
	if !idle {
		r.slots.whenIdle(cancel)
		defer r.slots.whenIdle(nil)
	}
	jobs, err := r.queue.GetMany(short, n)
	if err != nil && short.Err() != nil {
		return nil, ctx.Err()
	}
	return jobs, err
}
