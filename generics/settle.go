package generics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// verdict is what is to be done with a job after its handler.
type verdict struct {
	act     act
	outcome Outcome
	err     error         // for hooks and logs; nil if the handler returned nil
	text    string        // of the error, to be stored with the job
	reason  queue.Reason  // for As; "" for the usual one
	delay   time.Duration // before the next delivery
	quiet   bool          // the job hasn't ended: it is given back to be claimed again
}

// unstarted is the verdict on a job that was claimed and had better not have been.
var unstarted = verdict{act: release, outcome: Released, quiet: true}

type act int

const (
	ack act = iota
	nack
	fail
	release
)

// apply asks the store for one that isn't an ack.
func (v verdict) apply(ctx context.Context, j *queue.Job) error {
	var opts []queue.SettleOption
	if v.reason != "" {
		opts = append(opts, queue.As(v.reason))
	}
	switch v.act {
	case nack:
		return j.Nack(ctx, errors.New(v.text), append(opts, queue.Delay(v.delay))...)
	case fail:
		return j.Fail(ctx, errors.New(v.text), opts...)
	default:
		return j.Release(ctx, queue.Delay(v.delay))
	}
}

// settle has the verdict on a job stored and its end told, and doesn't wait for that. Acks go together; the other results
// are of different kinds, and the store puts those that come at the same time into one transaction by itself.
func (r *run) settle(h *hold) {
	if h.verdict.act == ack {
		r.ack(h)
		return
	}
	go r.settleAll([]*hold{h}, func(ctx context.Context, _ []*hold) ([]error, error) {
		err := h.verdict.apply(ctx, h.job)
		if lost(err) {
			return []error{err}, nil
		}
		return []error{nil}, err
	}, nil)
}

// storing asks the store for all verdicts at once. The answers are nil or a lost lease; an error means that there are none.
type storing func(ctx context.Context, holds []*hold) (losses []error, err error)

func (r *run) releaseMany(ctx context.Context, holds []*hold) ([]error, error) {
	return r.queue.ReleaseMany(ctx, refs(holds))
}

// settleAll stores the verdicts on some jobs, trying again until their leases end while the store can't, and then tells
// their ends. answered, if not nil, is called between the two.
func (r *run) settleAll(holds []*hold, store storing, answered func()) {
	holds, ends := standing(holds)
	pause := storePause(10*time.Millisecond, time.Second)
	unknown := false // whether an earlier attempt may have been stored
	for len(holds) > 0 {
		ctx, cancel := context.WithDeadline(r.settleCtx, earliest(holds))
		losses, err := store(ctx, holds)
		if err == nil {
			cancel()
			for i, h := range holds {
				ends = append(ends, h.answered(losses[i], unknown))
			}
			break
		}
		final := errors.Is(err, queue.ErrClosed) || errors.Is(err, queue.ErrInvalid)
		if !final {
			unknown = unknown || errors.Is(err, queue.ErrOutcomeUnknown)
			r.faults.report("settling jobs failed, trying again until their leases end", err)
			sleep(ctx, pause.NextBackOff())
		}
		cancel()
		var late []ending
		if holds, late = r.overtaken(holds, uncertain(err, unknown), final); len(holds) == 0 {
			ends = append(ends, late...)
		} else {
			go r.endAll(late) // its hooks don't keep the others from their tries
		}
	}
	if answered != nil {
		answered()
	}
	r.endAll(ends)
}

// standing parts the jobs whose verdicts are to be stored from those that their handlers have settled, or whose leases are
// lost.
func standing(holds []*hold) (rest []*hold, ends []ending) {
	for _, h := range holds {
		switch settled, lost := h.settle(); {
		case settled != "":
			ends = append(ends, ending{h, settled, h.verdict.err})
		case lost != nil:
			ends = append(ends, ending{h, Lost, lost})
		default:
			rest = append(rest, h)
		}
	}
	return rest, ends
}

// overtaken parts the jobs that can be tried again from those whose leases have ended. All have if the fault is final or
// the run is at its end.
func (r *run) overtaken(holds []*hold, fault error, final bool) (rest []*hold, late []ending) {
	now := time.Now()
	for _, h := range holds {
		switch {
		case final:
			late = append(late, ending{h, Lost, fault})
		case r.settleCtx.Err() != nil, !now.Before(h.end()):
			late = append(late, ending{h, Lost, tooLate(h, fault)})
		default:
			rest = append(rest, h)
		}
	}
	return rest, late
}

// answered is the job's end by the store's answer. unknown says that an earlier attempt may have been stored.
func (h *hold) answered(loss error, unknown bool) ending {
	v := h.verdict
	switch {
	case loss == nil, unknown && isSettled(loss):
		return ending{h, v.outcome, v.err}
	}
	if own := h.settledBefore(loss); own != "" {
		return ending{h, own, v.err}
	}
	return ending{h, Lost, uncertain(loss, unknown)}
}

// uncertain is the error of a result that an earlier attempt may have stored.
func uncertain(err error, unknown bool) error {
	if !unknown || errors.Is(err, queue.ErrOutcomeUnknown) {
		return err
	}
	return fmt.Errorf("%w: an earlier attempt may have been stored: %w", queue.ErrOutcomeUnknown, err)
}

// tooLate is the error of a result that couldn't be stored in time.
func tooLate(h *hold, err error) error {
	loss := &queue.LeaseLostError{Queue: h.job.Queue, ID: h.job.ID, Cause: queue.LossExpired}
	return fmt.Errorf("%w before its result could be stored: %w", loss, err)
}

// isSettled reports whether a loss means that this delivery has been settled.
func isSettled(loss error) bool {
	var l *queue.LeaseLostError
	return errors.As(loss, &l) && (l.Cause == queue.LossSettled || l.Cause == queue.LossGone)
}

func refs(holds []*hold) []queue.Ref {
	refs := make([]queue.Ref, len(holds))
	for i, h := range holds {
		refs[i] = h.job.Ref()
	}
	return refs
}

// earliest is when the first of the leases ends. holds isn't empty.
func earliest(holds []*hold) time.Time {
	first := holds[0].end()
	for _, h := range holds[1:] {
		if end := h.end(); end.Before(first) {
			first = end
		}
	}
	return first
}
