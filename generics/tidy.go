package generics

import (
	"context"
	"errors"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// tidyLoop looks after the queue now and then, so that expired jobs and old rows don't wait for somebody to claim.
func (r *run) tidyLoop(ctx context.Context) {
	every := min(max(r.queue.Lease()/2, time.Second), 30*time.Second)
	for {
		_, _, err := r.tidy(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, queue.ErrClosed) {
			r.faults.report("looking after the queue failed, trying again", err)
		}
		if !sleep(ctx, every) {
			return
		}
	}
}

// tidy reclaims expired jobs and applies the queue's retention; it returns how many jobs each of these changed.
func (r *run) tidy(ctx context.Context) (reclaimed, removed int, err error) {
	back, err := r.queue.ReclaimExpired(ctx)
	if err != nil {
		return 0, 0, err
	}
	removed, err = r.queue.ApplyRetention(ctx)
	return back.Returned + back.Failed, removed, err
}
