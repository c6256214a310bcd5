package generics

import (
	"context"
	"errors"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Job is one delivery of a T: what a receiver holds until its lease ends. It has the fields and methods of [queue.Job].
//
// A handler of a [Worker] needs none of the methods that settle, since the Worker does that by the handler's result; but
// it may settle the job itself, and then its result changes nothing any more.
type Job[T any] struct {
	*queue.Job
	Data T

	held *hold // by a Worker; nil when the job came from a Get
}

// Ack marks the job as done. See [queue.Queue.Ack].
func (j *Job[T]) Ack(ctx context.Context) error {
	return j.held.settling(Acked, func() error { return j.Job.Ack(ctx) })
}

// AckWith acks the job and runs fn's operations in the same transaction: both happen or neither does. This is how a job
// puts its follow-ups, on any queue of the Store, exactly once:
//
//	err := job.AckWith(ctx, func(tx *queue.Tx) error {
//		_, err := emails.PutTx(ctx, tx, Email{To: job.Data.Owner})
//		return err
//	})
//
// See [queue.Queue.AckWith].
func (j *Job[T]) AckWith(ctx context.Context, fn func(tx *queue.Tx) error) error {
	return j.held.settling(Acked, func() error { return j.Job.AckWith(ctx, fn) })
}

// AckTx acks the job in a transaction that the caller commits. If the caller rolls back, the job is still held; a Worker
// finds out which it was. See [queue.Queue.AckTx].
func (j *Job[T]) AckTx(ctx context.Context, tx queue.DBTX) error {
	return j.held.settlingTx(Acked, func() error { return j.Job.AckTx(ctx, tx) })
}

// Nack gives the job back for another delivery, or to the dead letters after the last one. See [queue.Queue.Nack].
func (j *Job[T]) Nack(ctx context.Context, cause error, opts ...queue.SettleOption) error {
	return j.held.settling(nackOutcome(j.Job), func() error { return j.Job.Nack(ctx, cause, opts...) })
}

// Fail moves the job to the dead letters. See [queue.Queue.Fail].
func (j *Job[T]) Fail(ctx context.Context, cause error, opts ...queue.SettleOption) error {
	return j.held.settling(Failed, func() error { return j.Job.Fail(ctx, cause, opts...) })
}

// Release gives the job back as if it had not been delivered. See [queue.Queue.Release].
func (j *Job[T]) Release(ctx context.Context, opts ...queue.SettleOption) error {
	return j.held.settling(Released, func() error { return j.Job.Release(ctx, opts...) })
}

// Extend sets the lease to end d from now and returns that instant. A Worker's heartbeats never shorten it. See
// [queue.Queue.Extend].
func (j *Job[T]) Extend(ctx context.Context, d time.Duration) (time.Time, error) {
	asked := time.Now()
	until, err := j.Job.Extend(ctx, d)
	if err == nil {
		j.held.extended(asked.Add(d))
	}
	return until, err
}

// nackOutcome is what a nack makes of the job.
func nackOutcome(j *queue.Job) Outcome {
	if j.Attempt >= j.MaxAttempts {
		return Failed
	}
	return Nacked
}

// invalidPayload is the error to store for a DecodeError: the codec's text alone, which names neither queue nor id again.
func invalidPayload(err error) error {
	var d *DecodeError
	if errors.As(err, &d) {
		err = d.Err
	}
	return errors.New(errorText(err))
}
