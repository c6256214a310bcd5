package queue

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// PurgeOptions chooses finished jobs to remove.
type PurgeOptions struct {
	OlderThan time.Duration     // at least so long since the job finished; 0 is any
	Failed    bool              // the dead letters too, not only acked jobs
	Progress  func(removed int) // called after each step; may be nil
}

// Purge removes finished jobs with their payloads and history, and says how many, in short steps: other work goes on
// meanwhile. Keys of removed jobs are free again.
func (q *Queue) Purge(ctx context.Context, opts PurgeOptions) (removed int, err error) {
	defer func() { err = q.fail("purge", err) }()
	if opts.OlderThan < 0 {
		return 0, invalid("older than %v: must not be negative", opts.OlderThan)
	}
	before := q.s.before(opts.OlderThan)
	progress := func(n int) {
		removed += n
		if opts.Progress != nil {
			opts.Progress(removed)
		}
	}
	if err := q.purgeSteps(ctx, before, (*sqlite.Queries).PurgeAcked, progress); err != nil || !opts.Failed {
		return removed, err
	}
	failed := func(q *sqlite.Queries, ctx context.Context, p sqlite.PurgeAckedParams) (int64, error) {
		return q.PurgeFailed(ctx, sqlite.PurgeFailedParams(p))
	}
	return removed, q.purgeSteps(ctx, before, failed, progress)
}

// before is the latest last transition of a job that is at least so old. 0 is any age, also that of a job which a clock
// ahead of ours has stamped.
func (s *Store) before(age time.Duration) int64 {
	if age == 0 {
		return math.MaxInt64
	}
	return s.nowMillis() - millis(age)
}

type purgeQuery func(*sqlite.Queries, context.Context, sqlite.PurgeAckedParams) (int64, error)

func (q *Queue) purgeSteps(ctx context.Context, before int64, purge purgeQuery, progress func(int)) error {
	for stride := newStride(); ; {
		rows := int64(stride.rows)
		var n int64
		err := q.s.write(ctx, &op{sync: synced, alone: true, rows: int(rows), run: func(t *txn) error {
			return stride.timed(func() (err error) {
				n, err = purge(t.q, context.Background(), sqlite.PurgeAckedParams{Queue: q.name, Before: before, N: rows})
				return err
			})
		}})
		if err != nil {
			return err
		}
		if n > 0 {
			progress(int(n))
			passing(betweenPurges)
		}
		if n < rows {
			return nil
		}
	}
}

// KeepAcked stores in the file how long acked jobs of this queue are kept. 0 deletes a job with its ack: its key is free
// then, and a second ack finds it gone. Longer times are applied by running Workers (see ApplyRetention).
func (q *Queue) KeepAcked(ctx context.Context, d time.Duration) error {
	if d < 0 || d > maxDelay {
		return q.fail("set retention", invalid("keep acked %v: must be between 0 and 100 years", d))
	}
	ms := millis(d)
	return q.setKeepAcked(ctx, &ms)
}

// KeepAckedForever keeps acked jobs until they are purged. That is the default.
func (q *Queue) KeepAckedForever(ctx context.Context) error { return q.setKeepAcked(ctx, nil) }

func (q *Queue) setKeepAcked(ctx context.Context, ms *int64) error {
	return q.act(ctx, "set retention", synced, func(t *txn) error {
		return t.q.SetKeepAcked(context.Background(), sqlite.SetKeepAckedParams{Queue: q.name, KeepAcked: ms})
	})
}

// ApplyRetention removes the acked jobs that the queue's retention doesn't keep, and says how many. Running Workers call
// it now and then.
func (q *Queue) ApplyRetention(ctx context.Context) (removed int, err error) {
	set, err := q.s.read.Settings(ctx, q.name)
	if errors.Is(err, sql.ErrNoRows) || err == nil && set.KeepAcked == nil {
		return 0, nil
	}
	if err != nil {
		return 0, q.fail("apply retention", q.s.readError(ctx, err))
	}
	before := q.s.before(time.Duration(*set.KeepAcked) * time.Millisecond)
	// Most times there is nothing: look before taking the write lock.
	page, err := q.s.read.ListAcked(ctx, sqlite.ListAckedParams{Queue: q.name, AfterID: 0, AfterTime: 0, N: 1})
	if err != nil || len(page) == 0 || page[0].UpdatedAt > before {
		return 0, q.fail("apply retention", q.s.readError(ctx, err))
	}
	err = q.purgeSteps(ctx, before, (*sqlite.Queries).PurgeAcked, func(n int) { removed += n })
	return removed, q.fail("apply retention", err)
}
