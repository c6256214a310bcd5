package queue

import (
	"context"
	"math"

	"github.com/localqueue/localqueue/db/sqlite"
)

// Peek returns the job that the next claim would take, also while the queue is paused, without taking it. ErrEmpty if
// there is none.
func (q *Queue) Peek(ctx context.Context) (*Record, error) {
	var best *sqlite.Job
	err := q.s.view(ctx, func(r *sqlite.Queries) (err error) {
		best, err = q.next(ctx, r)
		return err
	})
	if err == nil && best == nil {
		err = ErrEmpty
	}
	if err != nil {
		return nil, q.fail("peek", err)
	}
	rec := record(*best)
	return &rec, nil
}

// next finds the job that a claim would choose, among those that are claimable and those that the claim would promote
// and reclaim before it chooses.
func (q *Queue) next(ctx context.Context, r *sqlite.Queries) (*sqlite.Job, error) {
	now := q.s.nowMillis()
	ready, err := r.ListReady(ctx, sqlite.ListReadyParams{Queue: q.name, Priority: math.MaxInt64, N: 1})
	if err != nil {
		return nil, err
	}
	others, err := r.PeekDue(ctx, sqlite.PeekDueParams{Queue: q.name, Now: now, N: stepRows})
	if err != nil {
		return nil, err
	}
	ended, err := r.PeekExpired(ctx, sqlite.PeekExpiredParams{Queue: q.name, Now: now, N: stepRows})
	if err != nil {
		return nil, err
	}
	for _, e := range ended {
		others = append(others, sqlite.PeekDueRow(e))
	}
	var first sqlite.PeekDueRow
	if len(ready) > 0 {
		first = sqlite.PeekDueRow{ID: ready[0].ID, Priority: ready[0].Priority}
	}
	for _, o := range others {
		if first.ID == 0 || o.Priority > first.Priority || o.Priority == first.Priority && o.ID < first.ID {
			first = o
		}
	}
	switch {
	case first.ID == 0:
		return nil, nil
	case len(ready) > 0 && ready[0].ID == first.ID:
		return &ready[0], nil
	}
	job, err := r.Job(ctx, sqlite.JobParams{ID: first.ID, Queue: q.name})
	return &job, err
}
