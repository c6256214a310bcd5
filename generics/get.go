package generics

import (
	"context"
	"log/slog"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Get waits until a job comes or ctx ends and claims it. A payload that can't be decoded goes to the dead letters with
// reason [queue.InvalidPayload], its bytes unchanged, and Get takes the next job. See [queue.Queue.Get].
func (q *Queue[T]) Get(ctx context.Context) (*Job[T], error) { return q.getOne(ctx, q.raw.Get) }

// TryGet is [Queue.Get], and returns ErrEmpty at once where Get would wait.
func (q *Queue[T]) TryGet(ctx context.Context) (*Job[T], error) { return q.getOne(ctx, q.raw.TryGet) }

// GetMany waits for jobs as [Queue.Get] does and claims up to n of them, in order, as soon as there is one.
func (q *Queue[T]) GetMany(ctx context.Context, n int) ([]*Job[T], error) {
	return q.getMany(ctx, n, q.raw.GetMany)
}

// TryGetMany is [Queue.GetMany], and returns ErrEmpty at once where GetMany would wait.
func (q *Queue[T]) TryGetMany(ctx context.Context, n int) ([]*Job[T], error) {
	return q.getMany(ctx, n, q.raw.TryGetMany)
}

func (q *Queue[T]) getOne(ctx context.Context, claim func(context.Context) (*queue.Job, error)) (*Job[T], error) {
	for {
		raw, err := claim(ctx)
		if err != nil {
			return nil, err
		}
		data, err := q.decode(raw.ID, raw.Payload)
		if err == nil {
			return &Job[T]{Job: raw, Data: data}, nil
		}
		q.reject(ctx, raw, err)
	}
}

func (q *Queue[T]) getMany(ctx context.Context, n int, claim func(context.Context, int) ([]*queue.Job, error)) ([]*Job[T], error) {
	for {
		claimed, err := claim(ctx, n)
		if err != nil {
			return nil, err
		}
		jobs := make([]*Job[T], 0, len(claimed))
		for _, raw := range claimed {
			data, err := q.decode(raw.ID, raw.Payload)
			if err != nil {
				q.reject(ctx, raw, err)
				continue
			}
			jobs = append(jobs, &Job[T]{Job: raw, Data: data})
		}
		if len(jobs) > 0 {
			return jobs, nil
		}
	}
}

// rejectLag is how long failing an undecodable job may outlast the caller's context, so that a claim which came at the
// context's last moment doesn't leave the job leased.
const rejectLag = 50 * time.Millisecond

// reject fails a job whose payload can't be decoded. If that doesn't work, the job comes again when its lease ends and
// is rejected then.
func (q *Queue[T]) reject(ctx context.Context, raw *queue.Job, reason error) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.raw.Lease())
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(rejectLag, cancel)
	})()
	log := q.raw.Store().Logger().With("queue", raw.Queue, "job", raw.ID, "attempt", raw.Attempt)
	err := raw.Fail(own, invalidPayload(reason), queue.As(queue.InvalidPayload))
	switch {
	case err == nil:
		log.Info("job failed: its payload can't be decoded", "err", reason)
	case !lost(err):
		log.LogAttrs(ctx, slog.LevelError, "job with an undecodable payload couldn't be failed; it comes again when its lease ends", slog.Any("err", err))
	}
}
