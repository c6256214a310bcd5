package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// Stats is where a queue's jobs stand, in one snapshot, the same from every process.
type Stats struct {
	Queue      string
	Ready      int64         // with the delayed ones
	Delayed    int64         // not yet due
	Processing int64         // leased, with the expired ones
	Expired    int64         // leased, but the lease has ended and nothing has picked the job up yet
	Acked      int64         // that are still kept
	Failed     int64         // the dead letters
	OldestAge  time.Duration // since the oldest job that is due was put; 0 if none is
	Paused     bool
	KeepAcked  *time.Duration // nil: until purged
}

// Stats counts the queue's jobs. It reads counters: its cost doesn't grow with the backlog. A queue that nobody has used
// is all zeros.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	var st Stats
	err := q.s.view(ctx, func(r *sqlite.Queries) (err error) {
		st, err = stats(ctx, r, q.name, q.s.nowMillis())
		return err
	})
	return st, q.fail("stats", err)
}

// Queues returns the Stats of every queue that has ever had a job or a setting, by name, in one snapshot.
func (s *Store) Queues(ctx context.Context) (all []Stats, err error) {
	err = s.view(ctx, func(r *sqlite.Queries) error {
		names, err := r.Queues(ctx)
		if err != nil {
			return err
		}
		now := s.nowMillis()
		for _, name := range names {
			st, err := stats(ctx, r, name, now)
			if err != nil {
				return err
			}
			all = append(all, st)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("queues in %s: %w", s.dir, err)
	}
	return all, nil
}

func stats(ctx context.Context, r *sqlite.Queries, name string, now int64) (Stats, error) {
	st := Stats{Queue: name}
	row, err := r.Stats(ctx, sqlite.StatsParams{Now: now, Queue: name})
	if errors.Is(err, sql.ErrNoRows) {
		return st, nil
	}
	if err != nil {
		return st, err
	}
	st.Ready, st.Delayed, st.Processing, st.Expired = row.Ready, row.Waiting, row.Leased, row.Expired
	st.Acked, st.Failed, st.Paused = row.Acked, row.Failed, row.Paused != 0
	if row.KeepAcked != nil {
		keep := time.Duration(*row.KeepAcked) * time.Millisecond
		st.KeepAcked = &keep
	}
	if row.Ready > row.Waiting {
		oldest, err := r.OldestDue(ctx, sqlite.OldestDueParams{Queue: name, Now: now})
		if err != nil {
			return st, err
		}
		if oldest > 0 {
			st.OldestAge = max(0, time.Duration(now-oldest)*time.Millisecond)
		}
	}
	return st, nil
}
