package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// Cancel ends a job that hasn't finished: it goes to the dead letters, reason cancelled. If a receiver holds it, its lease
// is lost with cause cancelled, and a Worker cancels the handler's context. Errors: ErrNotFound, ErrFinished.
func (q *Queue) Cancel(ctx context.Context, id int64) error {
	return q.act(ctx, "cancel", synced, func(t *txn) error {
		ctx := context.Background()
		if _, err := t.q.RecordCancelled(ctx, sqlite.RecordCancelledParams{Now: t.now, ID: id, Queue: q.name}); err != nil {
			return err
		}
		n, err := t.q.Cancel(ctx, sqlite.CancelParams{Now: t.now, ID: id, Queue: q.name})
		if err != nil || n > 0 {
			t.ring(forRoom, q.name, int(n))
			return err
		}
		return q.refuse(t, id, ErrFinished)
	})
}

// Delete removes a job that nobody holds. Errors: ErrNotFound, ErrLeased.
func (q *Queue) Delete(ctx context.Context, id int64) error {
	return q.act(ctx, "delete", synced, func(t *txn) error {
		n, err := t.q.Delete(context.Background(), sqlite.DeleteParams{ID: id, Queue: q.name})
		if err != nil || n > 0 {
			t.ring(forRoom, q.name, int(n))
			return err
		}
		return q.refuse(t, id, ErrLeased)
	})
}

// RunNow makes a delayed job due. Errors: ErrNotFound, ErrNotDelayed.
func (q *Queue) RunNow(ctx context.Context, id int64) error {
	return q.act(ctx, "run", unsynced, func(t *txn) error {
		n, err := t.q.RunNow(context.Background(), sqlite.RunNowParams{Now: t.now, ID: id, Queue: q.name})
		if err != nil || n > 0 {
			t.ring(forJobs, q.name, int(n))
			return err
		}
		return q.refuse(t, id, ErrNotDelayed)
	})
}

// refuse explains why nothing was changed: the job isn't there, or its state isn't one to leave this way.
func (q *Queue) refuse(t *txn, id int64, why error) error {
	j, err := q.mustFind(t, id)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: job %d is %s", why, id, stateOf(j.Status, j.Delayed))
}

// DeleteFilter chooses jobs of one state to delete.
type DeleteFilter struct {
	State     State         // any but Leased
	OlderThan time.Duration // at least so long since the last transition; 0 is any
	DryRun    bool          // only count
}

// DeleteMany removes the jobs that a filter chooses and says how many, in bounded batches. A job that has left the state
// meanwhile stays.
func (q *Queue) DeleteMany(ctx context.Context, f DeleteFilter) (removed int, err error) {
	defer func() { err = q.fail("delete", err) }()
	status, delayed, ok := f.State.stored()
	if !ok || status == statusLeased || f.OlderThan < 0 {
		return 0, invalid("state %q, older than %v: use ready, delayed, acked or failed, and no negative age", string(f.State), f.OlderThan)
	}
	before := q.s.before(f.OlderThan)
	last, err := q.s.read.LastID(ctx)
	if err != nil {
		return 0, q.s.readError(ctx, err)
	}
	const page = 10 * stepRows
	stride := newStride()
	for after := int64(0); ; {
		rows, err := q.s.read.StateIDs(ctx, sqlite.StateIDsParams{After: after, Upto: last, Queue: q.name, Status: status, Delayed: delayed, Before: before, N: page})
		if err != nil {
			return removed, q.s.readError(ctx, err)
		}
		if len(rows) == 0 {
			return removed, nil
		}
		after = rows[len(rows)-1].ID
		var ids []int64
		for _, r := range rows {
			if r.Picked != 0 {
				ids = append(ids, r.ID)
			}
		}
		if f.DryRun {
			removed += len(ids)
			continue
		}
		for len(ids) > 0 {
			step := ids[:min(stride.rows, len(ids))]
			ids = ids[len(step):]
			n, err := q.deleteStep(ctx, stride, sqlite.DeleteManyParams{Ids: idList(step), Queue: q.name, Status: status, Delayed: delayed}, len(step))
			if err != nil {
				return removed, err
			}
			removed += n
		}
	}
}

func (q *Queue) deleteStep(ctx context.Context, stride *stride, p sqlite.DeleteManyParams, rows int) (int, error) {
	var n int64
	err := q.s.write(ctx, &op{sync: synced, alone: true, rows: rows, run: func(t *txn) error {
		err := stride.timed(func() (err error) {
			n, err = t.q.DeleteMany(context.Background(), p)
			return err
		})
		t.ring(forRoom, q.name, int(n))
		return err
	}})
	return int(n), err
}

// act is an operator's action: rare, and in a transaction of its own, since it may fail after it has changed something.
func (q *Queue) act(ctx context.Context, what string, sync syncing, run func(*txn) error) error {
	return q.fail(what, q.s.write(ctx, &op{sync: sync, alone: true, run: run}))
}

func idList(ids []int64) string {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return string(append(b, ']'))
}

// Pause stops the delivery of this queue's jobs in every process, from their next claim on; it is stored in the file.
// Puts, settling, heartbeats and the end of leases go on.
func (q *Queue) Pause(ctx context.Context) error { return q.setPaused(ctx, "pause", 1) }

// Resume ends a pause and wakes receivers.
func (q *Queue) Resume(ctx context.Context) error { return q.setPaused(ctx, "resume", 0) }

func (q *Queue) setPaused(ctx context.Context, op string, paused int64) error {
	return q.act(ctx, op, synced, func(t *txn) error {
		if paused == 0 {
			t.ring(forJobs, q.name, 1<<30)
		}
		return t.q.SetPaused(context.Background(), sqlite.SetPausedParams{Queue: q.name, Paused: paused})
	})
}
