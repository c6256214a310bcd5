package generics

import (
	"context"
	"sync"
)

// acks gathers the jobs to ack. A lone one is stored at once; those that come while the store works on others wait, and go
// together when it has answered.
type acks struct {
	mu      sync.Mutex
	waiting []*hold
	storing bool
}

// ack has an ack stored and the job's end told.
func (r *run) ack(h *hold) {
	r.acks.mu.Lock()
	defer r.acks.mu.Unlock()
	r.acks.waiting = append(r.acks.waiting, h)
	if !r.acks.storing {
		r.acks.storing = true
		go r.storeAcks()
	}
}

// storeAcks stores the acks that wait. The next ones needn't wait for the hooks of these.
func (r *run) storeAcks() {
	r.settleAll(r.acks.take(), r.ackMany, func() {
		if r.acks.more() {
			go r.storeAcks()
		}
	})
}

func (a *acks) take() []*hold {
	a.mu.Lock()
	defer a.mu.Unlock()
	batch := a.waiting
	a.waiting = nil
	return batch
}

// more reports whether acks have come meanwhile. If not, the next one that comes starts the storing.
func (a *acks) more() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.storing = len(a.waiting) > 0
	return a.storing
}

func (r *run) ackMany(ctx context.Context, holds []*hold) ([]error, error) {
	return r.queue.AckMany(ctx, refs(holds))
}
