package generics

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/localqueue/localqueue/queue"
)

// slot runs jobs one after the other, in a goroutine of its own, until none waits.
func (r *run) slot(h *hold) {
	for h != nil {
		h = r.process(h)
	}
}

// process is one job's way through its slot: handler, verdict, and off to be settled. It returns the slot's next job, and
// doesn't wait for the settling. What follows the handler is deferred, so that one which exits the goroutine doesn't skip it.
func (r *run) process(h *hold) (next *hold) {
	ctx, cancel := context.WithCancelCause(r.handlerCtx)
	var v verdict
	returned := false
	defer func() {
		cancel(nil)
		if !h.conclude(v) {
			return // the Worker has stopped without this handler
		}
		next = r.slots.leave(h)
		r.settle(h)
		if next != nil && !returned {
			go r.slot(next) // this goroutine is exiting
		}
	}()
	if h.begin(cancel) {
		r.invoke(ctx, h, &v)
	}
	returned = true
	return nil // until the deferred function has the next job
}

// invoke runs the handler and judges its result. Code of the user's runs nowhere else, but for hooks and Backoff.
func (r *run) invoke(ctx context.Context, h *hold, v *verdict) {
	if r.jobTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.jobTimeout)
		defer cancel()
	}
	returned := false
	defer func() {
		if !returned {
			*v = r.panicked(h, &PanicError{Value: recover(), Stack: debug.Stack()})
		}
	}()
	r.started(h)
	*v = r.judge(ctx, h, r.handle(ctx, h))
	returned = true
}

// undecodable wraps a DecodeError of the Worker's own, so that one which a handler returns isn't taken for it.
type undecodable struct{ error }

// judge turns a handler's result into a verdict.
func (r *run) judge(ctx context.Context, h *hold, err error) verdict {
	if err == nil {
		return verdict{act: ack, outcome: Acked}
	}
	if bad, ok := err.(undecodable); ok { //nolint:errorlint // a handler may return one wrapped: that isn't the Worker's
		return verdict{act: fail, outcome: Failed, err: bad.error, text: invalidPayload(bad.error).Error(), reason: queue.InvalidPayload}
	}
	var permanent *permanentError
	var snooze *snoozeError
	var retry *retryError
	switch text := errorText(err); {
	case errors.Is(context.Cause(ctx), ErrStopped):
		return verdict{act: release, outcome: Released, err: err}
	case errors.As(err, &permanent), matches(err, r.permanent):
		return verdict{act: fail, outcome: Failed, err: err, text: text, reason: queue.Permanent}
	case errors.As(err, &snooze):
		return verdict{act: release, outcome: Released, delay: snooze.delay}
	case errors.As(err, &retry):
		return verdict{act: nack, outcome: nackOutcome(h.job), err: err, text: text, delay: retry.delay}
	default:
		return verdict{act: nack, outcome: nackOutcome(h.job), err: err, text: text, delay: r.delay(h.job.Attempt)}
	}
}

func (r *run) panicked(h *hold, p *PanicError) verdict {
	return verdict{act: nack, outcome: Panicked, err: p, text: panicText(p), reason: queue.Panicked, delay: r.delay(h.job.Attempt)}
}

func matches(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
