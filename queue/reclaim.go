package queue

import (
	"context"

	"github.com/localqueue/localqueue/db/sqlite"
)

// stepRows bounds what one transaction promotes, reclaims or removes: a few ms of work; a million rows at once would hold
// the write lock for seconds.
const stepRows = 500

// Reclaimed counts leases that had ended.
type Reclaimed struct {
	Returned int // back to ready
	Failed   int // that was the last delivery
}

// ReclaimExpired ends the leases of this queue whose time has passed, until none is left. Every claim does so too, a step
// at a time; call this where nothing claims. Other work goes on between the steps.
func (q *Queue) ReclaimExpired(ctx context.Context) (sum Reclaimed, err error) {
	for {
		o, err := q.s.read.Outlook(context.Background(), q.name)
		if err != nil {
			return sum, q.fail("reclaim", q.s.readError(ctx, err))
		}
		if o.NextLeaseEnd == 0 || o.NextLeaseEnd > q.s.nowMillis() {
			return sum, nil
		}
		var step Reclaimed
		err = q.s.write(ctx, &op{sync: unsynced, rows: stepRows, run: func(t *txn) (err error) {
			step, err = q.reclaim(t)
			return err
		}})
		if err != nil {
			return sum, q.fail("reclaim", err)
		}
		sum.Returned += step.Returned
		sum.Failed += step.Failed
	}
}

// bringIn promotes what is due and reclaims what has ended, one step of each, given when the next of each falls.
func (q *Queue) bringIn(t *txn, nextDue, nextLeaseEnd int64) error {
	if nextDue > 0 && nextDue <= t.now {
		n, err := t.q.PromoteDue(context.Background(), sqlite.PromoteDueParams{Queue: q.name, Now: t.now, N: stepRows})
		if err != nil {
			return err
		}
		t.ring(forJobs, q.name, int(n))
	}
	if nextLeaseEnd > 0 && nextLeaseEnd <= t.now {
		_, err := q.reclaim(t)
		return err
	}
	return nil
}

func (q *Queue) reclaim(t *txn) (n Reclaimed, err error) {
	ctx := context.Background()
	if err := q.plantedStaleReclaim(t); err != nil {
		return n, err
	}
	if _, err := t.q.MendEndless(ctx, sqlite.MendEndlessParams{Now: t.now, Queue: q.name, N: stepRows}); err != nil {
		return n, err
	}
	if _, err := t.q.RecordExpired(ctx, sqlite.RecordExpiredParams{Queue: q.name, Now: t.now, N: stepRows}); err != nil {
		return n, err
	}
	rows, err := t.q.ReclaimExpired(ctx, sqlite.ReclaimExpiredParams{Now: t.now, Queue: q.name, N: stepRows})
	if err != nil {
		return n, err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
		if r.Status == statusFailed {
			n.Failed++
		} else {
			n.Returned++
		}
	}
	t.ring(forJobs, q.name, n.Returned)
	t.ring(forRoom, q.name, n.Failed)
	return n, q.plantedAfterReclaim(t, ids)
}
