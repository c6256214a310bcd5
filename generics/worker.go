package generics

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Handler works on one job. Its result says what becomes of the job:
//
//   - nil: acked.
//   - an error: delivered again after the Worker's [Backoff], or to the dead letters if this was the last delivery.
//   - [Permanent], or one of [PermanentErrors]: to the dead letters at once.
//   - [Snooze]: given back for a while, the attempt not used.
//   - [RetryAfter]: delivered again after that time.
//   - a panic, or runtime.Goexit: as an error, with outcome [Panicked] and the stack in its text.
//
// Its context ends with a cause (see [context.Cause]) that matches [queue.ErrLeaseLost] when the lease is lost, also
// [queue.ErrCancelled] when that is because the job was cancelled, [ErrStopped] when the Worker stops and the grace period
// is over, [queue.ErrClosed] when the Store was closed, or [context.DeadlineExceeded] after [JobTimeout].
type Handler[T any] = func(ctx context.Context, job *Job[T]) error

// Worker runs a handler for the jobs of a queue: it claims them, keeps their leases alive while the handler runs, and
// settles them by its result.
type Worker[T any] struct {
	queue   *Queue[T]
	handler Handler[T] // with middleware around it
	config  config
	err     error // what is wrong with the options
	running atomic.Bool
	counts  counter
}

// NewWorker makes a Worker; [Worker.Run] starts it and reports options that are wrong.
func NewWorker[T any](q *Queue[T], handler func(ctx context.Context, job *Job[T]) error, opts ...WorkerOption) *Worker[T] {
	w := &Worker[T]{queue: q, handler: handler}
	if q == nil || handler == nil {
		w.err = invalid("a worker needs a queue and a handler")
		return w
	}
	w.config, w.err = configure(q.raw.Lease(), q.raw.Store().Logger(), opts)
	for i := len(w.config.middleware) - 1; i >= 0; i-- {
		wrap, ok := w.config.middleware[i].(func(Handler[T]) Handler[T])
		if !ok {
			w.err = errors.Join(w.err, invalid("middleware is a %T, the handler a %T", w.config.middleware[i], handler))
			continue
		}
		w.handler = wrap(w.handler)
	}
	return w
}

// Run works until ctx ends, and returns nil then. Handlers that are running at that time get the [Grace] period to
// finish; then their contexts are cancelled, and a handler that returns an error after that has its job released, as if it
// had not been delivered. Jobs claimed ahead are released at once. Heartbeats go on until the last handler is done. A
// handler that doesn't return within a second of being cancelled is left behind: its job's lease runs out by itself. Results
// that a busy file keeps from being stored hold Run for at most 5 s more.
//
// Faults of the store don't end Run, but for those named by [EndOn]: it logs them, now and then, and goes on when they are
// gone. It returns ErrClosed
// when the Store is closed, which cancels the handlers at once; ErrInvalid, without claiming anything, when an option is
// wrong; ErrRunning when the Worker is running. After Run has returned it may be called again.
//
// While it runs, a Worker also returns expired jobs of the queue and applies its retention.
func (w *Worker[T]) Run(ctx context.Context) error {
	if w.err != nil {
		return w.err
	}
	if !w.running.CompareAndSwap(false, true) {
		return fmt.Errorf("queue %q: %w", w.queue.raw.Name(), ErrRunning)
	}
	defer w.running.Store(false)
	return newRun(ctx, w.queue.raw, w.config, w.handle, &w.counts).work(ctx)
}

// Counts tells how the jobs so far have ended, also while the Worker runs.
func (w *Worker[T]) Counts() Counts { return w.counts.read() }

// handle is all that the run needs to know of T.
func (w *Worker[T]) handle(ctx context.Context, h *hold) error {
	data, err := w.queue.decode(h.job.ID, h.job.Payload)
	if err != nil {
		return undecodable{err}
	}
	return w.handler(ctx, &Job[T]{Job: h.job, Data: data, held: h})
}
