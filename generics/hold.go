package generics

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// hold is a job that a Worker holds, from the claim to its end. Its slot, the heartbeats, the handler's own settling, the
// Worker's and the stop meet here.
type hold struct {
	job   *queue.Job
	taken time.Time // when it was claimed

	mu       sync.Mutex
	phase    phase
	verdict  verdict                 // what is to be done with it, once the handler has ended
	begun    time.Time               // when the handler started
	took     time.Duration           // how long it ran
	deadline time.Time               // when the lease ends, by the monotonic clock, as far as is known here
	cancel   context.CancelCauseFunc // of the handler's context, while it runs
	lost     error                   // why the handler's result is void, once it is
	tried    Outcome                 // what the handler's own settling makes of the job, if it took effect
	settled  Outcome                 // the same, known to have taken effect
}

type phase int

const (
	waiting   phase = iota // claimed ahead of a free slot
	running                // the handler runs
	concluded              // the handler has ended, or won't run; the verdict waits to be stored
	settling               // the verdict is being stored
	abandoned              // the Worker has stopped, the handler has not returned
)

// newHold takes up a job just claimed. The Store's clock says how much of the lease is left, but never more than all.
func newHold(job *queue.Job, now time.Time, lease time.Duration) *hold {
	left := min(max(job.LeaseUntil.Sub(now), 0), lease)
	taken := time.Now()
	return &hold{job: job, taken: taken, deadline: taken.Add(left)}
}

// begin marks the handler's start. False means that it mustn't: the lease is lost, or nobody waits for it any more.
func (h *hold) begin(cancel context.CancelCauseFunc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase != waiting || h.lost != nil {
		return false
	}
	h.phase, h.begun, h.cancel = running, time.Now(), cancel
	return true
}

// conclude marks the handler's end, and notes what is to be done. False means that nobody waits for it any more.
func (h *hold) conclude(v verdict) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase > running {
		return false
	}
	h.verdict = v
	h.leave(concluded)
	return true
}

// abandon gives up on the handler. False means that it has ended.
func (h *hold) abandon() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase > running {
		return false
	}
	h.leave(abandoned)
	return true
}

func (h *hold) leave(to phase) {
	h.phase = to
	if !h.begun.IsZero() {
		h.took = time.Since(h.begun)
	}
}

// settle marks that the verdict is now being stored, unless the job has been settled by its handler or its lease is lost.
// From here on the lease isn't renewed any more: attempts to store end with it.
func (h *hold) settle() (settled Outcome, lost error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase = settling
	return h.settled, h.lost
}

// needsLease reports whether the lease has to be kept up: not after a loss, nor once the job is settled or being settled.
func (h *hold) needsLease() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.phase <= concluded && h.lost == nil && h.settled == ""
}

func (h *hold) end() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

// renewed notes a heartbeat, which never shortens the lease.
func (h *hold) renewed(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until.After(h.deadline) {
		h.deadline = until
	}
}

// extended notes the handler's own Extend, which may.
func (h *hold) extended(until time.Time) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = until
}

// lose takes note of a lease that is gone: the handler's context is cancelled and its result will be void. A lease that
// is gone because the handler settled the job is no loss.
func (h *hold) lose(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase > concluded || h.lost != nil || h.settled != "" {
		return
	}
	if h.settled = h.ownDoing(cause); h.settled != "" {
		return
	}
	h.lost = cause
	if h.cancel != nil {
		h.cancel(cause)
	}
}

// settledBefore is how the handler settled the job, if that is why the Worker's settling met a lost lease; else "".
func (h *hold) settledBefore(loss error) Outcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ownDoing(loss)
}

func (h *hold) ownDoing(loss error) Outcome {
	var l *queue.LeaseLostError
	if !errors.As(loss, &l) {
		return ""
	}
	switch {
	case l.Cause == queue.LossSettled && h.tried == "":
		return Settled // only the receipt's holder can have done that
	case l.Cause == queue.LossSettled, l.Cause == queue.LossGone: // gone: acked, and not kept
		return h.tried
	}
	return ""
}

// settling runs one of the handler's own settling calls and remembers what it did.
func (h *hold) settling(o Outcome, call func() error) error {
	if h == nil {
		return call()
	}
	before := h.try(o)
	err := call()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.settled = o
	case !errors.Is(err, queue.ErrOutcomeUnknown):
		h.tried = before
	}
	return err
}

// settlingTx is settling in a transaction that may yet be rolled back: whether it took effect shows later.
func (h *hold) settlingTx(o Outcome, call func() error) error {
	if h == nil {
		return call()
	}
	before := h.try(o)
	err := call()
	if err != nil {
		h.try(before)
	}
	return err
}

func (h *hold) try(o Outcome) (before Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, h.tried = h.tried, o
	return before
}

// ran is how long the handler has run, once it has ended or was given up; false if it didn't run.
func (h *hold) ran() (took time.Duration, ran bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.took, !h.begun.IsZero()
}
