package generics

import (
	"context"
	"sync"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const (
	handlerLag = time.Second     // for handlers to return after their contexts were cancelled
	settleLag  = 5 * time.Second // for the results that are still being stored after that
)

// run is one call of Worker.Run. It knows nothing of the jobs' type. A job's way through it, file by file: claim.go takes
// it from the queue, slots.go gives it a slot, process.go runs its handler there, settle.go stores the result (acks.go: many
// at once), report.go tells the end. heartbeat.go keeps its lease meanwhile.
type run struct {
	config
	queue  *queue.Queue
	handle func(context.Context, *hold) error
	counts *counter
	slots  *slots
	acks   acks
	faults *faults

	handlerCtx     context.Context // above all handlers' contexts; ends after the grace period
	cancelHandlers context.CancelCauseFunc
	settleCtx      context.Context // for settling and heartbeats; ends with the run
	cancelSettles  context.CancelFunc
}

func newRun(ctx context.Context, q *queue.Queue, c config, handle func(context.Context, *hold) error, counts *counter) *run {
	r := &run{config: c, queue: q, handle: handle, counts: counts, slots: newSlots(newPace(c)),
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
	background.Go(func() { r.settleAll(ahead, r.releaseMany, nil) })
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
		r.report(ending{h, Abandoned, pressing})
	}
	if !wait(r.slots.empty, settleLag) {
		r.cancelSettles()
		<-r.slots.empty
	}
}
