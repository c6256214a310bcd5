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
}

type act int

const (
	ack act = iota
	nack
	fail
	release
)

// apply asks the store for it.
func (v verdict) apply(ctx context.Context, j *queue.Job) error {
	var opts []queue.SettleOption
	if v.reason != "" {
		opts = append(opts, queue.As(v.reason))
	}
	switch v.act {
	case ack:
		return j.Ack(ctx)
	case nack:
		return j.Nack(ctx, errors.New(v.text), append(opts, queue.Delay(v.delay))...)
	case fail:
		return j.Fail(ctx, errors.New(v.text), opts...)
	default:
		return j.Release(ctx, queue.Delay(v.delay))
	}
}

// settle carries out a verdict.
func (r *run) settle(h *hold, v verdict) (Outcome, error) {
	return r.settleBy(h, v, func(ctx context.Context) error { return v.apply(ctx, h.job) })
}

// settleBy tries until the lease ends when the store can't. It returns what became of the job, and why if that isn't what
// was asked for.
func (r *run) settleBy(h *hold, v verdict, apply func(context.Context) error) (Outcome, error) {
	switch settled, lost := h.standing(); {
	case settled != "":
		return settled, v.err
	case lost != nil:
		return Lost, lost
	}
	ctx, cancel := context.WithDeadline(r.settleCtx, h.end())
	defer cancel()
	pause := storePause(10*time.Millisecond, time.Second)
	unknown := false // whether an earlier attempt may have been stored
	for {
		err := apply(ctx)
		switch {
		case err == nil:
			return v.outcome, v.err
		case lost(err):
			if unknown && isSettled(err) {
				return v.outcome, v.err
			}
			if own := h.settledBefore(err); own != "" {
				return own, v.err
			}
			return Lost, err
		case errors.Is(err, queue.ErrClosed), errors.Is(err, queue.ErrInvalid):
			return Lost, err
		}
		unknown = unknown || errors.Is(err, queue.ErrOutcomeUnknown)
		r.faults.report("settling a job failed, trying again until its lease ends", err)
		if !sleep(ctx, pause.NextBackOff()) {
			return Lost, r.tooLate(h, err)
		}
	}
}

// releaseAll gives back jobs whose handlers haven't run, in one transaction.
func (r *run) releaseAll(holds []*hold) {
	if len(holds) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(r.settleCtx, earliest(holds))
	defer cancel()
	pause := storePause(10*time.Millisecond, time.Second)
	unknown := false
	for {
		losses, err := r.queue.ReleaseMany(ctx, refs(holds))
		if err == nil {
			for i, h := range holds {
				if losses[i] == nil || unknown && isSettled(losses[i]) {
					r.report(h, Released, nil)
				} else {
					r.report(h, Lost, losses[i])
				}
			}
			return
		}
		unknown = unknown || errors.Is(err, queue.ErrOutcomeUnknown)
		r.faults.report("releasing jobs failed, trying again until a lease ends", err)
		if errors.Is(err, queue.ErrClosed) || !sleep(ctx, pause.NextBackOff()) {
			for _, h := range holds {
				r.report(h, Lost, r.tooLate(h, err))
			}
			return
		}
	}
}

// tooLate is the error of a result that couldn't be stored in time.
func (r *run) tooLate(h *hold, err error) error {
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
