package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// ListFailed pages through the dead letters by id. A record whose payload can't be decoded, or whose reason is of another
// program, is listed like any other.
func (q *Queue) ListFailed(ctx context.Context, opts ListOptions) (Page, error) {
	return q.List(ctx, Failed, opts)
}

// RetryFailed makes a failed job new: ready now, no attempts, reason and last error cleared. Its id, key, bytes, creation
// time, delivery number and history stay. Of two processes that try, one wins.
//
// Errors: ErrNotFound, ErrNotFailed, and ErrDuplicate (a [DuplicateError]) when another live job holds its key by now.
func (q *Queue) RetryFailed(ctx context.Context, id int64) error {
	return q.act(ctx, "retry", synced, func(t *txn) error {
		ctx := context.Background()
		n, err := t.q.RetryFailed(ctx, sqlite.RetryFailedParams{Now: t.now, ID: id, Queue: q.name})
		if err != nil {
			return err
		}
		if n > 0 {
			t.ring(forJobs, q.name, 1)
			return nil
		}
		j, err := q.mustFind(t, id)
		if err != nil {
			return err
		}
		if j.Status != statusFailed {
			return fmt.Errorf("%w: job %d is %s", ErrNotFailed, id, stateOf(j.Status, j.Delayed))
		}
		held, err := q.holder(t, deref(j.JobID))
		if err != nil {
			return err
		}
		return &DuplicateError{Queue: q.name, ID: id, JobID: deref(j.JobID), Holder: held.ID}
	})
}

func (q *Queue) mustFind(t *txn, id int64) (sqlite.Job, error) {
	j, err := t.q.Job(context.Background(), sqlite.JobParams{ID: id, Queue: q.name})
	if errors.Is(err, sql.ErrNoRows) {
		return j, notFound(id)
	}
	return j, err
}

func notFound(id int64) error {
	return fmt.Errorf("%w: this queue has no job %d", ErrNotFound, id)
}

// RetryFilter chooses dead letters. Its zero value chooses all.
type RetryFilter struct {
	ErrorContains string        // a part of the last error, case counts; "" is any
	OlderThan     time.Duration // at least so long in the dead letters; 0 is any
	Limit         int           // at most so many jobs; 0 is no limit
	DryRun        bool          // only count
}

// RetryReport is what RetryMany did.
type RetryReport struct {
	Matched   int // jobs that the filter chose
	Retried   int // that are ready now
	Conflicts int // that stayed, because another live job holds their key
}

// RetryMany retries the dead letters that a filter chooses, in bounded batches; other work goes on between them. Each
// job's own state decides when its turn comes, and the report counts what really changed.
func (q *Queue) RetryMany(ctx context.Context, f RetryFilter) (rep RetryReport, err error) {
	defer func() { err = q.fail("retry", err) }()
	if f.OlderThan < 0 || f.Limit < 0 {
		return rep, invalid("older than %v, limit %d: must not be negative", f.OlderThan, f.Limit)
	}
	before := int64(math.MaxInt64)
	if f.OlderThan > 0 {
		before = q.s.nowMillis() - millis(f.OlderThan) + 1
	}
	for after := int64(0); ; {
		rows, err := q.s.read.FailedIDs(ctx, sqlite.FailedIDsParams{Error: f.ErrorContains, Before: before, Queue: q.name, After: after, N: stepRows})
		if err != nil {
			return rep, q.s.readError(ctx, err)
		}
		if len(rows) == 0 {
			return rep, nil
		}
		after = rows[len(rows)-1].ID
		var ids []int64
		for _, r := range rows {
			if r.Picked != 0 && (f.Limit == 0 || rep.Matched < f.Limit) {
				ids = append(ids, r.ID)
				rep.Matched++
			}
		}
		if len(ids) > 0 && !f.DryRun {
			var retried, conflicts int
			err = q.s.write(ctx, &op{sync: synced, alone: true, run: func(t *txn) (err error) {
				retried, conflicts, err = q.retryStep(t, ids)
				return err
			}})
			if err != nil {
				return rep, err
			}
			rep.Retried += retried
			rep.Conflicts += conflicts
		}
		if f.Limit > 0 && rep.Matched >= f.Limit {
			return rep, nil
		}
	}
}

func (q *Queue) retryStep(t *txn, ids []int64) (retried, conflicts int, err error) {
	ctx := context.Background()
	done, err := t.q.RetryMany(ctx, sqlite.RetryManyParams{Now: t.now, Ids: idList(ids), Queue: q.name})
	if err != nil {
		return 0, 0, err
	}
	ready := make(map[int64]bool, len(done))
	for _, id := range done {
		ready[id] = true
	}
	for _, id := range ids {
		if ready[id] {
			continue
		}
		if row, err := t.q.WhyLost(ctx, sqlite.WhyLostParams{ID: id}); err == nil && row.Status == statusFailed {
			conflicts++
		} else if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, 0, err
		}
	}
	t.ring(forJobs, q.name, len(done))
	return len(done), conflicts, nil
}
