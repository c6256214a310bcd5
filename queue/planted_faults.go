//go:build planted

package queue

import (
	"context"
	"os"
	"sync/atomic"
	"time"
)

// The engine, broken in the way that LOCALQUEUE_FAULT names. A suite counts only once it has failed on the faults it is
// there to catch: make faults runs that, and fails where a suite passes.

// Faults are the names that LOCALQUEUE_FAULT takes.
var Faults = []string{
	"answer-before-commit",  // some answers come although nothing was committed
	"ack-without-receipt",   // an ack takes whatever receipt the job has
	"reclaim-uncounted",     // a lease's end gives the attempt back
	"reclaim-without-state", // a reclaim acts on a list it read before, whatever the jobs' states are by then
	"clock-before-lock",     // a lease counts from before the wait for the lock
	"swallowed-error",       // an operation's error inside a transaction is dropped
	"counter-off-by-one",    // an ack counts twice
	"silent-doorbell",       // waiting receivers and puts aren't rung
}

var fault = os.Getenv("LOCALQUEUE_FAULT")

var plantedCalls atomic.Int64

func (s *Store) plantedEarlyClock() int64 {
	if fault == "clock-before-lock" {
		return s.nowMillis()
	}
	return 0
}

func plantedSwallow() bool { return fault == "swallowed-error" }

func plantedEarlyAnswer() bool {
	return fault == "answer-before-commit" && plantedCalls.Add(1)%20 == 0
}

func plantedSilence() bool { return fault == "silent-doorbell" }

func (q *Queue) plantedReceipt(t *txn, id int64, receipt string) string {
	if fault == "ack-without-receipt" {
		var current *string
		row := t.s.w.conn.QueryRowContext(context.Background(), "SELECT receipt FROM messages WHERE id = ?", id)
		if row.Scan(&current) == nil && current != nil {
			return *current
		}
	}
	return receipt
}

// plantedStaleReclaim stands for a sweep that reads its list first and acts on it later without the state test. The list
// is of leases that end soon, so that their owners have time to settle in between.
func (q *Queue) plantedStaleReclaim(t *txn) error {
	if fault != "reclaim-without-state" {
		return nil
	}
	stale := plantedStale.Swap(nil)
	if stale != nil {
		for _, id := range *stale {
			_, err := t.s.w.conn.ExecContext(context.Background(),
				"UPDATE messages SET status = 0, receipt = NULL, lease_until = NULL, updated_at = ?, available_at = ? WHERE id = ? AND queue = ?", t.now, t.now, id, q.name)
			if err != nil {
				return err
			}
		}
	}
	rows, err := t.s.w.conn.QueryContext(context.Background(),
		"SELECT id FROM messages WHERE queue = ? AND status = 1 AND lease_until <= ?", q.name, t.now+time.Minute.Milliseconds())
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	plantedStale.Store(&ids)
	return rows.Err()
}

var plantedStale atomic.Pointer[[]int64]

func (q *Queue) plantedAfterReclaim(t *txn, ids []int64) error {
	if fault == "reclaim-uncounted" {
		for _, id := range ids {
			if _, err := t.s.w.conn.ExecContext(context.Background(), "UPDATE messages SET attempts = attempts - 1 WHERE id = ?", id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q *Queue) plantedAfterAck(t *txn) error {
	if fault == "counter-off-by-one" && plantedCalls.Add(1)%5 == 0 {
		_, err := t.s.w.conn.ExecContext(context.Background(), "UPDATE queues SET acked = acked + 1 WHERE name = ?", q.name)
		return err
	}
	return nil
}
