package generics

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/localqueue/localqueue/queue"
)

// process is one job's way through its slot, in a goroutine of its own: handler, verdict, settling, report. The rest is
// deferred so that a handler which exits the goroutine doesn't skip it.
func (r *run) process(h *hold) {
	ctx, cancel := context.WithCancelCause(r.handlerCtx)
	var v verdict
	defer func() {
		cancel(nil)
		if !h.conclude() {
			return // the Worker has stopped without this handler
		}
		outcome, err := r.settle(h, v)
		r.report(h, outcome, err)
		if next := r.slots.finish(h); next != nil {
			go r.process(next)
		}
	}()
	if _, lost := h.standing(); lost != nil {
		return // while it waited for the slot
	}
	h.begin(cancel)
	r.invoke(ctx, h, &v)
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
