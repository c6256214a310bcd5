package queue_test

import (
	"database/sql"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// backlog fills a queue with n rows of each state that a claim must pass by, and as many in another queue.
func backlog(t *testing.T, dir string, n int) {
	t.Helper()
	db, err := openRaw(dir)
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	now := time.Now().UnixMilli()
	for _, row := range []string{ // queue, status, delayed, attempts, delivery, priority, available_at, lease_until, receipt
		"'default', 0, 0, 0, 0, i % 5, :now, NULL, NULL",
		"'default', 0, 1, 0, 0, 9, :now + 3600000 + i, NULL, NULL",
		"'default', 1, 0, 1, 1, 9, :now, :now + 3600000 + i, '1-' || lower(hex(randomblob(16)))",
		"'default', 2, 0, 1, 1, 9, :now, NULL, NULL",
		"'default', 3, 0, 4, 4, 9, :now, NULL, NULL",
		"'elsewhere', 0, 0, 0, 0, 9, :now, NULL, NULL",
	} {
		_, err = db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :n)
			INSERT INTO messages (payload, max_attempts, created_at, updated_at, queue, status, delayed, attempts, delivery, priority, available_at, lease_until, receipt)
			SELECT x'00', 4, :now, :now, `+row+` FROM n`, sql.Named("n", n), sql.Named("now", now))
		ok(t, err)
	}
}

func TestCase20_AClaimCostsTheSameWhateverTheBacklog(t *testing.T) {
	sizes := []int{200, sized(60_000, 200_000)}
	var queues []*queue.Queue
	var clock atomic.Int64
	clock.Store(time.Now().UnixMilli())
	for _, n := range sizes {
		dir := t.TempDir()
		s := openStore(t, dir, queue.WithDurability(queue.Normal), queue.WithClock(func() time.Time { return time.UnixMilli(clock.Load()) }))
		backlog(t, dir, n)
		queues = append(queues, s.Default())
	}
	claims := func(what string, n int, before func(q *queue.Queue)) {
		took := make([][]time.Duration, len(queues))
		for range n { // in turns, so that both have the same weather
			for i, q := range queues {
				before(q)
				began := time.Now()
				j, err := q.TryGet(t.Context())
				took[i] = append(took[i], time.Since(began))
				ok(t, err)
				ok(t, j.Release(t.Context()))
			}
		}
		for i := range took {
			slices.Sort(took[i])
		}
		small, large := took[0][n/2], took[1][n/2]
		// Within a factor of 2 is what bench measures; a walk over the backlog would cost far more than this bound.
		if large > 6*small {
			t.Errorf("%s took %v beside %d rows of each kind, %v beside %d", what, small, sizes[0], large, sizes[1])
		}
	}
	claims("a claim", 200, func(*queue.Queue) {})
	claims("a claim while a job falls due", 20, func(q *queue.Queue) {
		ok(t, second(q.Put(t.Context(), nil, queue.Delay(time.Millisecond))))
		clock.Add(1)
	})
	for _, q := range queues {
		found, err := q.Store().Check(t.Context(), true)
		ok(t, err)
		same(t, "findings", 0, len(found))
	}
}
