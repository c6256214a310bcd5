package generics

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const (
	handlerLag = time.Second     // for handlers to return after their contexts were cancelled
	settleLag  = 5 * time.Second // for the results that are still being stored after that
	idleWait   = 100 * time.Millisecond
	mostClaims = 256 // jobs per claim
)

// run is one call of Worker.Run. It knows nothing of the jobs' type.
type run struct {
	config
	queue  *queue.Queue
	handle func(context.Context, *hold) error
	counts *counter
	slots  *slots
	faults *faults

	handlerCtx     context.Context // above all handlers' contexts; ends after the grace period
	cancelHandlers context.CancelCauseFunc
	settleCtx      context.Context // for settling and heartbeats; ends with the run
	cancelSettles  context.CancelFunc
}

func newRun(ctx context.Context, q *queue.Queue, c config, handle func(context.Context, *hold) error, counts *counter) *run {
	r := &run{config: c, queue: q, handle: handle, counts: counts, slots: newSlots(c.concurrency, c.ahead),
		faults: newFaults(c.logger.With("queue", q.Name()))}
	own := context.WithoutCancel(ctx)
	r.handlerCtx, r.cancelHandlers = context.WithCancelCause(own)
	r.settleCtx, r.cancelSettles = context.WithCancel(own)
	return r
}

// work runs everything and returns when all of it has ended.
func (r *run) work(ctx context.Context) error {
	var background sync.WaitGroup
	stopBeating := make(chan struct{})
	background.Go(func() { newKeeper(r).loop(stopBeating) })
	tidyCtx, stopTidying := context.WithCancel(ctx)
	background.Go(func() { r.tidyLoop(tidyCtx) })

	err := r.claimLoop(ctx)
	stopTidying()
	ahead := r.slots.close()
	background.Go(func() {
		r.releaseAll(ahead)
		for _, h := range ahead {
			r.slots.finish(h)
		}
	})
	r.finish()
	close(stopBeating)
	r.cancelSettles()
	background.Wait()
	return err
}

// finish waits for the handlers, then presses them, then leaves them behind.
func (r *run) finish() {
	defer r.cancelHandlers(ErrStopped)
	pressing := ErrStopped
	grace := time.NewTimer(r.grace)
	defer grace.Stop()
	select {
	case <-r.slots.empty:
		return
	case <-grace.C:
	case <-r.queue.Store().Done():
		pressing = queue.ErrClosed // no result can be stored any more
	}
	r.cancelHandlers(pressing)
	if wait(r.slots.empty, handlerLag) {
		return
	}
	for _, h := range r.slots.abandon() {
		r.report(h, Abandoned, pressing)
	}
	if !wait(r.slots.empty, settleLag) {
		r.cancelSettles()
		<-r.slots.empty
	}
}

// claimLoop claims jobs as there is room for them. It returns nil when ctx ends or the work that was asked for is done,
// and ErrClosed when the Store is closed.
func (r *run) claimLoop(ctx context.Context) error {
	pause := storePause(50*time.Millisecond, 5*time.Second)
	for r.awaitRoom(ctx) {
		_, err := r.claim(ctx)
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

// awaitRoom waits until a job may be claimed. False means that the run is over.
func (r *run) awaitRoom(ctx context.Context) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-r.queue.Store().Done():
			return false
		default:
		}
		if r.slots.free() > 0 {
			return true
		}
		select {
		case <-ctx.Done():
		case <-r.queue.Store().Done():
		case <-r.slots.freed:
		}
	}
}

// claim claims what there is room for, starts it, and returns how many jobs that were.
func (r *run) claim(ctx context.Context) (int, error) {
	jobs, err := r.next(ctx, min(r.slots.free(), mostClaims))
	if err != nil {
		return 0, err
	}
	return r.take(ctx, jobs), nil
}

// take takes up claimed jobs and returns how many it started or keeps for the next free slots. If ctx has ended meanwhile
// they only wait to be given back.
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
	for _, h := range r.slots.admit(holds) {
		go r.process(h)
	}
	return len(holds)
}

// errDone ends a run whose work is done.
var errDone = errors.New("no more jobs")

// next claims up to n jobs: it waits for them, or finds out that there is nothing left to do.
func (r *run) next(ctx context.Context, n int) ([]*queue.Job, error) {
	if r.until == stopped {
		return r.queue.GetMany(ctx, n)
	}
	idle := len(r.slots.held()) == 0 // before the look: what a handler put by its end is then seen
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
