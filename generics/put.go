package generics

import (
	"context"

	"github.com/localqueue/localqueue/queue"
)

// NewJob is one job to put, with options of its own.
type NewJob[T any] struct {
	Data    T
	Options []queue.PutOption
}

// Put encodes a value and stores it as a job. It returns after the commit. See [queue.Queue.Put]; a value that can't be
// encoded is ErrInvalid.
func (q *Queue[T]) Put(ctx context.Context, value T, opts ...queue.PutOption) (queue.PutResult, error) {
	payload, err := q.encode(value)
	if err != nil {
		return queue.PutResult{}, err
	}
	return q.raw.Put(ctx, payload, opts...)
}

// TryPut is [Queue.Put], and returns ErrFull at once where Put would wait for room.
func (q *Queue[T]) TryPut(ctx context.Context, value T, opts ...queue.PutOption) (queue.PutResult, error) {
	payload, err := q.encode(value)
	if err != nil {
		return queue.PutResult{}, err
	}
	return q.raw.TryPut(ctx, payload, opts...)
}

// PutMany stores values in one transaction, all or none, each with the same options. Results are in the order of the
// values. Everything is encoded before the file is touched.
func (q *Queue[T]) PutMany(ctx context.Context, values []T, opts ...queue.PutOption) ([]queue.PutResult, error) {
	jobs := make([]NewJob[T], len(values))
	for i, v := range values {
		jobs[i] = NewJob[T]{Data: v, Options: opts}
	}
	return q.PutJobs(ctx, jobs)
}

// PutJobs is [Queue.PutMany] with options for each job.
func (q *Queue[T]) PutJobs(ctx context.Context, jobs []NewJob[T]) ([]queue.PutResult, error) {
	raw, err := q.encodeAll(jobs)
	if err != nil {
		return nil, err
	}
	return q.raw.PutMany(ctx, raw)
}

// PutTx is [Queue.Put] inside a transaction that the caller commits: that of [queue.Store.Tx] or [Job.AckWith], or an
// *sql.Tx of the caller's own on the same file. See [queue.Queue.PutTx].
func (q *Queue[T]) PutTx(ctx context.Context, tx queue.DBTX, value T, opts ...queue.PutOption) (queue.PutResult, error) {
	payload, err := q.encode(value)
	if err != nil {
		return queue.PutResult{}, err
	}
	return q.raw.PutTx(ctx, tx, payload, opts...)
}

// PutJobsTx is [Queue.PutJobs] inside a transaction that the caller commits.
func (q *Queue[T]) PutJobsTx(ctx context.Context, tx queue.DBTX, jobs []NewJob[T]) ([]queue.PutResult, error) {
	raw, err := q.encodeAll(jobs)
	if err != nil {
		return nil, err
	}
	return q.raw.PutManyTx(ctx, tx, raw)
}

func (q *Queue[T]) encodeAll(jobs []NewJob[T]) ([]queue.NewJob, error) {
	raw := make([]queue.NewJob, len(jobs))
	for i, j := range jobs {
		payload, err := q.encode(j.Data)
		if err != nil {
			return nil, err
		}
		raw[i] = queue.NewJob{Payload: payload, Options: j.Options}
	}
	return raw, nil
}
