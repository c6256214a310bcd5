package generics

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/localqueue/localqueue/queue"
)

// lookEvery is how soon a handler hears that its job was cancelled, where heartbeats are further apart.
const lookEvery = 50 * time.Millisecond

// keeper keeps the leases of all jobs in hand, with one statement for all, and ends the handlers of those that are lost.
// It runs in one goroutine.
type keeper struct {
	*run
	interval time.Duration
	pause    *backoff.ExponentialBackOff // between attempts while renewing fails
	failing  bool
}

func newKeeper(r *run) *keeper {
	interval := r.heartbeat
	if r.heartbeatOff {
		interval = r.queue.Lease() / 3 // how soon the end of a new job's lease comes into view
	}
	return &keeper{run: r, interval: interval, pause: storePause(min(10*time.Millisecond, interval), interval)}
}

func (k *keeper) loop(stop <-chan struct{}) {
	for next := time.Now().Add(k.interval); ; {
		timer := time.NewTimer(min(time.Until(next), lookEvery))
		select {
		case <-stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		k.giveBack(k.slots.overdue(time.Now()))
		if time.Now().Before(next) {
			k.look()
		} else {
			next = time.Now().Add(k.beat())
		}
	}
}

// look finds, without the write lock, the jobs that were taken away since the last heartbeat (cancelled, as a rule),
// ends their handlers, and returns how many these are.
func (k *keeper) look() int {
	holds := k.needing()
	if len(holds) == 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(k.settleCtx, lookEvery)
	defer cancel()
	still, err := k.queue.Held(ctx, refs(holds))
	if err != nil {
		return 0 // the next heartbeat meets it too, and does something about it
	}
	var gone []*hold
	for i, h := range holds {
		if !still[i] {
			gone = append(gone, h)
		}
	}
	if len(gone) == 0 {
		return 0
	}
	// A heartbeat tells the cause, and can't revive them.
	beats, err := k.queue.Heartbeat(ctx, refs(gone), k.queue.Lease())
	if err != nil {
		return 0
	}
	for i, h := range gone {
		if loss := beats[i].Err; loss != nil {
			h.lose(loss)
		}
	}
	return len(gone)
}

// beat renews the leases once and returns when to come back.
func (k *keeper) beat() time.Duration {
	holds := k.needing()
	if k.failing || k.heartbeatOff {
		holds = expire(holds)
	}
	switch {
	case len(holds) == 0:
		return k.interval
	case k.heartbeatOff:
		return min(k.interval, max(time.Until(earliest(holds)), 0))
	}
	// Beyond the first lease's end the handlers concerned must hear of it, whatever the store is doing.
	ctx, cancel := context.WithDeadline(k.settleCtx, earliest(holds))
	defer cancel()
	asked := time.Now()
	beats, err := k.queue.Heartbeat(ctx, refs(holds), k.queue.Lease())
	if err != nil {
		return k.failed(holds, err)
	}
	k.failing = false
	k.pause.Reset()
	for i, h := range holds {
		if loss := beats[i].Err; loss != nil {
			h.lose(loss)
		} else {
			h.renewed(asked.Add(k.queue.Lease()))
		}
	}
	return k.interval
}

// failed plans the next attempt, soon, and no later than the first lease's end.
func (k *keeper) failed(holds []*hold, err error) time.Duration {
	k.failing = true
	if errors.Is(err, queue.ErrClosed) {
		return k.interval // the run is about to end
	}
	k.faults.report("renewing leases failed, trying again until they end", err)
	return min(k.pause.NextBackOff(), max(time.Until(earliest(holds)), 0))
}

// needing lists the jobs whose leases are to be kept.
func (k *keeper) needing() []*hold {
	var holds []*hold
	for _, h := range k.slots.all() {
		if h.needsLease() {
			holds = append(holds, h)
		}
	}
	return holds
}

// expire ends the handlers of those jobs whose lease is over by the monotonic clock, and returns the others.
func expire(holds []*hold) (rest []*hold) {
	now := time.Now()
	for _, h := range holds {
		if now.Before(h.end()) {
			rest = append(rest, h)
		} else {
			h.lose(&queue.LeaseLostError{Queue: h.job.Queue, ID: h.job.ID, Cause: queue.LossExpired})
		}
	}
	return rest
}
