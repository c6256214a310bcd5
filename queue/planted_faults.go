//go:build planted

package queue

import (
	"context"
	"database/sql"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/localqueue/localqueue/queue/internal/turnstile"
)

// The engine, broken in the way that LOCALQUEUE_FAULT names. A suite counts only once it has failed on the faults it is
// there to catch: make faults runs that, and fails where a suite passes.

// Faults are the names that LOCALQUEUE_FAULT takes.
var Faults = []string{
	"answer-before-commit",    // some answers come although nothing was committed
	"ack-without-receipt",     // an ack takes whatever receipt the job has
	"reclaim-uncounted",       // a lease's end gives the attempt back
	"reclaim-without-state",   // a reclaim acts on a list it read before, whatever the jobs' states are by then
	"clock-before-lock",       // a lease counts from before the wait for the lock
	"remembered-time",         // the clock never goes back behind the latest time that was seen
	"swallowed-error",         // an operation's error inside a transaction is dropped
	"counter-off-by-one",      // an ack counts twice
	"silent-doorbell",         // a commit rings nobody; the poll finds its news later
	"deaf-processes",          // a commit rings nobody in other processes
	"first-come",              // heartbeats and settles wait behind puts
	"left-claim-kept",         // a job claimed for a caller who has left stays leased
	"batch-error-swallowed",   // a batch that fails fails for its leader only
	"unsynced",                // no commit is synced, whatever the durability
	"no-checkpoint",           // the WAL is left to SQLite
	"backup-without-snapshot", // half of a backup's jobs are of a later moment
	"backup-by-steps",         // each step of a backup has a read transaction of its own
	"readers-first",           // the WAL starts anew only when nobody happens to read
	"endless-turn",            // a process that has the turn keeps it as long as it writes
	"markless-import",         // a batch of an import is stored without its mark
	"no-passing-by",           // one that is stopped in the line holds up all behind it
}

var fault = os.Getenv("LOCALQUEUE_FAULT")

var plantedCalls atomic.Int64

func (s *Store) plantedEarlyClock() int64 {
	if fault == "clock-before-lock" {
		return s.nowMillis()
	}
	return 0
}

func (s *Store) plantedTime(now int64) int64 {
	if fault != "remembered-time" {
		return now
	}
	latest, _ := plantedLatest.LoadOrStore(s, new(atomic.Int64))
	for seen := latest.(*atomic.Int64); ; {
		last := seen.Load()
		if now <= last {
			return last
		}
		if seen.CompareAndSwap(last, now) {
			return now
		}
	}
}

var plantedLatest sync.Map // by Store

func plantedSwallow() bool { return fault == "swallowed-error" }

func plantedEarlyAnswer() bool {
	return fault == "answer-before-commit" && plantedCalls.Add(1)%20 == 0
}

func plantedUnsynced() bool { return fault == "unsynced" }

func plantedSilence() bool { return fault == "silent-doorbell" }

func plantedDeafness() bool { return fault == "deaf-processes" }

func plantedPatience() bool { return fault == "first-come" }

func plantedPatientReaders() bool { return fault == "readers-first" }

func plantedNoCheckpoint() bool { return fault == "no-checkpoint" }

func plantedNoSnapshot() bool { return fault == "backup-by-steps" }

// plantedTornCopy stands for a backup that reads in more than one transaction: every second job is that of a later moment.
func plantedTornCopy(source, copied string) error {
	if fault != "backup-without-snapshot" {
		return nil
	}
	db, err := sql.Open("sqlite3", "file:"+escapePath(copied)+"?mode=rw")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("ATTACH ? AS source", "file:"+escapePath(source)+"?mode=rw"); err != nil {
		return err
	}
	time.Sleep(20 * time.Millisecond) // the others go on
	var columns string
	if err := db.QueryRow("SELECT group_concat(name) FROM pragma_table_info('messages')").Scan(&columns); err != nil {
		return err
	}
	_, err = db.Exec("BEGIN; DELETE FROM messages WHERE id % 2; INSERT INTO messages (" + columns + ") SELECT " + columns + " FROM source.messages WHERE id % 2; COMMIT")
	return err
}

func plantedMarkless() bool { return fault == "markless-import" }

func plantedKeeping() bool { return fault == "left-claim-kept" }

func plantedAnswer(i int, err error) error {
	if fault == "batch-error-swallowed" && i > 0 {
		return nil
	}
	return err
}

func plantedTimes(t turnstile.Times) turnstile.Times {
	switch fault {
	case "endless-turn":
		t.Turn, t.Least, t.Linger, t.Stall = time.Hour, time.Hour, time.Hour, time.Hour
	case "no-passing-by":
		t.Stall = time.Hour
	}
	return t
}

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

// plantedStaleReclaim stands for a sweep that reads its list first and acts on it later without looking at the jobs again.
// The list is of all leases, each with its end; the next sweep ends those whose time has come, whatever their owners have
// done meanwhile: settled, or extended.
func (q *Queue) plantedStaleReclaim(t *txn) error {
	if fault != "reclaim-without-state" {
		return nil
	}
	plantedStale.Lock()
	defer plantedStale.Unlock()
	ctx, list := context.Background(), plantedStale.lists
	where := q.s.path + " " + q.name
	for id, until := range list[where] {
		if until > t.now {
			continue
		}
		_, err := t.s.w.conn.ExecContext(ctx,
			"UPDATE messages SET status = 0, receipt = NULL, lease_until = NULL, updated_at = ?, available_at = ? WHERE id = ? AND queue = ?", t.now, t.now, id, q.name)
		if err != nil {
			return err
		}
	}
	rows, err := t.s.w.conn.QueryContext(ctx, "SELECT id, lease_until FROM messages WHERE queue = ? AND status = 1 AND lease_until > ?", q.name, t.now)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	list[where] = map[int64]int64{}
	for rows.Next() {
		var id, until int64
		if err := rows.Scan(&id, &until); err != nil {
			return err
		}
		list[where][id] = until
	}
	return rows.Err()
}

var plantedStale = struct {
	sync.Mutex
	lists map[string]map[int64]int64 // by file and queue: job and the end of its lease
}{lists: map[string]map[int64]int64{}}

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
