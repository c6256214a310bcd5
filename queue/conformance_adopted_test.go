package queue_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var adoptedCases = []fileCase{
	{"Rule42_AFileOfTheOriginalIsAdoptedWithEveryJob", func(t *testing.T) {
		dir := t.TempDir()
		now := time.Now()
		originalFileAt(t, dir, now)
		ctx := t.Context()
		status, err := queue.MigrateStatus(ctx, dir)
		ok(t, err)
		for _, m := range status {
			same(t, "applied before", false, m.Applied)
		}
		clock := &fakeClock{}
		clock.set(now)
		s := openStore(t, dir, queue.WithClock(clock.now))
		q, err := s.Queue("old")
		ok(t, err)
		got := map[queue.State]string{}
		for _, state := range allStates {
			for r, err := range q.All(ctx, state) {
				ok(t, err)
				got[state] += string(r.Payload) + " " + r.JobID + " " + string(r.Reason) + " " + r.LastError
			}
		}
		same(t, "jobs", map[queue.State]string{queue.Ready: "ready a  ", queue.Delayed: "delayed   boom", queue.Leased: "leased b  ",
			queue.Acked: "acked c  ", queue.Failed: "failed d unknown bang"}, got)
		st, err := q.Stats(ctx)
		ok(t, err)
		same(t, "stats", queue.Stats{Queue: "old", Ready: 2, Delayed: 1, Processing: 1, Acked: 1, Failed: 1, OldestAge: time.Hour}, st)

		res, err := q.Put(ctx, nil, queue.JobID("c"))
		ok(t, err)
		same(t, "its keys are held", queue.PutResult{ID: 4, Duplicate: true}, res)
		same(t, "a receipt of the original counts", error(nil), q.Ack(ctx, 3, "0123456789abcdef0123456789abcdef"))
		j, err := q.TryGet(ctx)
		ok(t, err)
		same(t, "ready", []any{int64(1), 1, int64(1)}, []any{j.ID, j.Attempt, j.Delivery})
		ok(t, j.Ack(ctx))
		clock.set(now.Add(time.Hour))
		j, err = q.TryGet(ctx)
		ok(t, err)
		same(t, "its second attempt has the second number", []any{int64(2), 2, int64(2), "boom"}, []any{j.ID, j.Attempt, j.Delivery, j.LastError})
		ok(t, j.Nack(ctx, nil))
		ok(t, q.RetryFailed(ctx, 5))
		found, err := s.Check(ctx, false)
		ok(t, err)
		same(t, "findings", 0, len(found))
	}},
	{"Rule42_AFileOfTheLastOriginalIsAdoptedWithItsReasons", func(t *testing.T) {
		dir := t.TempDir()
		schema, err := os.ReadFile(filepath.Join("..", "sql", "sqlite", "testdata", "original", "1.4.1.sql"))
		ok(t, err)
		sqliteFile(t, filepath.Join(dir, "localqueue.db"), string(schema), `INSERT INTO messages
			(queue, payload, status, attempts, max_attempts, available_at, receipt, lease_until, last_error, failure_reason, job_id, created_at, updated_at) VALUES
			('q', x'00ff', 3, 1, 4, 1, NULL, NULL, 'a', 'permanent_handler_error', 'k', 1, 1),
			('q', x'01', 3, 4, 4, 1, NULL, NULL, 'b', 'retries_exhausted', NULL, 1, 1),
			('q', x'02', 3, 4, 4, 1, NULL, NULL, 'c', 'a new one', NULL, 1, 1),
			('q', x'03', 1, 4, 4, 1, 'r', 2, NULL, NULL, NULL, 1, 1),
			('q', x'04', 1, 1, 4, 1, 'r', 2, NULL, NULL, NULL, 1, 1)`)
		s := openStore(t, dir)
		q, err := s.Queue("q")
		ok(t, err)
		same(t, "leases that ended long ago", queue.Reclaimed{Returned: 1, Failed: 1}, first(q.ReclaimExpired(t.Context())))
		var reasons []queue.Reason
		for r, err := range q.All(t.Context(), queue.Failed) {
			ok(t, err)
			reasons = append(reasons, r.Reason)
		}
		same(t, "reasons", []queue.Reason{queue.Permanent, queue.RetriesExhausted, queue.UnknownReason, queue.LeaseExpired}, reasons)
		found, err := s.Check(t.Context(), false)
		ok(t, err)
		same(t, "findings", 0, len(found))
	}},
	{"Rule42_ManyStoresAdoptOneFileAtOnce", func(t *testing.T) {
		for range 3 {
			dir := t.TempDir()
			originalFile(t, dir)
			var opens []*pending[*queue.Store]
			for range 6 {
				opens = append(opens, inBackground(func() (*queue.Store, error) { return queue.Open(dir) }))
			}
			for _, o := range opens {
				s, err := o.await(t)
				ok(t, err)
				t.Cleanup(func() { ok(t, s.Close()) })
				q, err := s.Queue("old")
				ok(t, err)
				st, err := q.Stats(t.Context())
				ok(t, err)
				same(t, "jobs", int64(5), st.Ready+st.Processing+st.Acked+st.Failed)
			}
		}
	}},
}

func first[T any](v T, _ error) T { return v }
