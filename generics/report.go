package generics

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/localqueue/localqueue/queue"
)

// ending is what became of a job.
type ending struct {
	h       *hold
	outcome Outcome
	err     error // why, if that isn't what the handler asked for; else the handler's own
}

// endAll tells the ends of jobs and lets go of them. A hook that exits its goroutine doesn't keep the others from it.
func (r *run) endAll(ends []ending) {
	defer func() {
		if len(ends) > 0 {
			go r.endAll(ends)
		}
	}()
	for len(ends) > 0 {
		e := ends[0]
		ends = ends[1:]
		r.end(e)
	}
}

func (r *run) end(e ending) {
	defer r.slots.finish(e.h)
	if e.outcome != Released || !e.h.verdict.quiet {
		r.report(e)
	}
}

// report counts, logs and tells the end of a job.
func (r *run) report(end ending) {
	took, _ := end.h.ran()
	e := Event{Job: end.h.job, Outcome: end.outcome, Err: end.err, Duration: took}
	r.counts.add(e.Outcome)
	r.log(e)
	for _, f := range r.onDone {
		r.guarded("OnDone", func() { f(e) })
	}
}

// started tells that a job's handler is about to run.
func (r *run) started(h *hold) {
	for _, f := range r.onStart {
		f(h.job)
	}
}

func (r *run) log(e Event) {
	l := r.faults.logger
	attrs := []slog.Attr{slog.Int64("job", e.Job.ID), slog.Int("attempt", e.Job.Attempt), slog.String("outcome", string(e.Outcome)), slog.Any("err", e.Err)}
	switch e.Outcome {
	case Nacked, Failed:
		l.LogAttrs(context.Background(), slog.LevelInfo, "job "+string(e.Outcome), attrs...)
	case Panicked:
		l.LogAttrs(context.Background(), slog.LevelInfo, "job panicked; its history has the stack", attrs...)
	case Lost, Abandoned:
		if errors.Is(e.Err, queue.ErrCancelled) {
			l.LogAttrs(context.Background(), slog.LevelInfo, "job cancelled", attrs...)
		} else {
			r.faults.report("job "+string(e.Outcome)+": it will be delivered again when its lease has ended", e.Err, attrs[:3]...)
		}
	default:
		if l.Enabled(context.Background(), slog.LevelDebug) {
			l.LogAttrs(context.Background(), slog.LevelDebug, "job "+string(e.Outcome), attrs...)
		}
	}
}

// delay asks the Backoff, which is the user's.
func (r *run) delay(attempt int) (d time.Duration) {
	d = defaultBackoff(attempt)
	r.guarded("Backoff", func() { d = clampDelay(r.backoff(attempt)) })
	return d
}

// guarded runs a function of the user's that isn't the handler.
func (r *run) guarded(name string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			r.faults.report(name+" panicked", &PanicError{Value: p})
		}
	}()
	f()
}

// faults logs what is wrong with the store or with us, at most one line per period: during a fault every job and every
// attempt meets it.
type faults struct {
	logger *slog.Logger
	period time.Duration

	mu      sync.Mutex
	last    time.Time
	omitted int // since the last line
}

func newFaults(l *slog.Logger) *faults { return &faults{logger: l, period: 5 * time.Second} }

func (f *faults) report(what string, err error, attrs ...slog.Attr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.last.IsZero() && time.Since(f.last) < f.period {
		f.omitted++
		return
	}
	if f.omitted > 0 {
		attrs = append(attrs, slog.Int("omitted", f.omitted))
	}
	f.logger.LogAttrs(context.Background(), slog.LevelError, what, append(attrs, slog.Any("err", err))...)
	f.last, f.omitted = time.Now(), 0
}

// storePause is how long to wait between attempts while the store is at fault.
func storePause(first, most time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = first, most, 2
	b.Reset()
	return b
}

// sleep waits, and reports whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// wait waits for a channel to be closed, and reports whether that came within d.
func wait(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
