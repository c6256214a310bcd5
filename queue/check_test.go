package queue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// lived is a queue with a job in each state, keys, a history and a payload beside its row.
func lived(t *testing.T, dir string) {
	t.Helper()
	ctx := t.Context()
	s, err := queue.Open(dir)
	ok(t, err)
	q := s.Default()
	for i, opts := range [][]queue.PutOption{{queue.JobID("a")}, {queue.JobID("b"), queue.UniqueWhilePending()}, {}, {queue.MaxRetries(0)}, {}, {queue.Delay(time.Hour)}} {
		_, err := q.Put(ctx, fmt.Append(nil, "payload ", i, repeat("x", i*2000)), opts...)
		ok(t, err)
	}
	for _, settle := range []func(*queue.Job) error{
		func(j *queue.Job) error { return j.Ack(ctx) },                          // 1
		func(j *queue.Job) error { return j.Ack(ctx) },                          // 2
		func(j *queue.Job) error { return j.Nack(ctx, errors.New("once")) },     // 3
		func(j *queue.Job) error { return j.Nack(ctx, errors.New("twice")) },    // 3
		func(j *queue.Job) error { return nil },                                 // 3 is leased
		func(j *queue.Job) error { return j.Fail(ctx, errors.New("for good")) }, // 4
	} {
		j, err := q.TryGet(ctx)
		ok(t, err)
		ok(t, settle(j))
	}
	ok(t, s.Close())
}

func checked(t *testing.T, dir string, quick bool) []queue.Finding {
	t.Helper()
	s, err := queue.Open(dir)
	ok(t, err)
	defer func() { ok(t, s.Close()) }()
	found, err := s.Check(t.Context(), quick)
	ok(t, err)
	return found
}

func TestCheckFindsEveryInvariantThatIsBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		breaks []string
		want   queue.Finding
	}{
		{"nothing", nil, queue.Finding{}},
		{"a counter", []string{"UPDATE queues SET ready = ready + 1"}, queue.Finding{Queue: "default", Text: "the counters say 3 ready, the rows are 2"}},
		{"two counters", []string{"UPDATE queues SET acked = 0, failed = 7"},
			queue.Finding{Queue: "default", Text: "the counters say 0 acked, the rows are 2; the counters say 7 failed, the rows are 1"}},
		{"a counter that is none", []string{"UPDATE queues SET delayed = NULL"}, queue.Finding{Queue: "default", Text: "the counters say -1 delayed, the rows are 1"}},
		{"no counters", []string{"DELETE FROM queues"}, queue.Finding{Queue: "default", Text: "has jobs but no counters"}},
		{"counters of nothing", []string{"INSERT INTO queues (name, leased) VALUES ('gone', 1)"}, queue.Finding{Queue: "gone", Text: "the counters say 1 leased, the rows are 0"}},
		{"a status", []string{"UPDATE messages SET status = 9 WHERE id = 5"}, queue.Finding{Queue: "default", ID: 5, Text: "has the unknown status 9"}},
		{"a lease without a receipt", []string{"UPDATE messages SET receipt = NULL WHERE id = 3"}, queue.Finding{Queue: "default", ID: 3, Text: "is leased without a receipt"}},
		{"a lease without an end", []string{"UPDATE messages SET lease_until = NULL WHERE id = 3"}, queue.Finding{Queue: "default", ID: 3, Text: "is leased without an end"}},
		{"a receipt without a lease", []string{"UPDATE messages SET receipt = 'x' WHERE id = 5"}, queue.Finding{Queue: "default", ID: 5, Text: "has a receipt but is not leased"}},
		{"more attempts than allowed", []string{"UPDATE messages SET attempts = 5, delivery = 5 WHERE id = 3"}, queue.Finding{Queue: "default", ID: 3, Text: "has 5 attempts of at most 4"}},
		{"no attempt left", []string{"UPDATE messages SET attempts = 4, delivery = 4 WHERE id = 5"}, queue.Finding{Queue: "default", ID: 5, Text: "is ready after 4 attempts of at most 4"}},
		{"negative attempts", []string{"UPDATE messages SET attempts = -1 WHERE id = 5"}, queue.Finding{Queue: "default", ID: 5, Text: "has -1 attempts"}},
		{"delayed and done", []string{"UPDATE messages SET delayed = 1 WHERE id = 1"}, queue.Finding{Queue: "default", ID: 1, Text: "is delayed but not ready"}},
		{"fewer deliveries than attempts", []string{"UPDATE messages SET delivery = 0 WHERE id = 1"}, queue.Finding{Queue: "default", ID: 1, Text: "has fewer deliveries (0) than attempts (1)"}},
		{"a payload twice", []string{"UPDATE messages SET payload = x'01' WHERE id = 5"},
			queue.Finding{Queue: "default", ID: 5, Text: "has its bytes twice, in its row and beside it; those in the row count"}},
		{"a payload without a job", []string{"INSERT INTO payloads VALUES (77, x'01')"}, queue.Finding{ID: 77, Text: "a payload row is left of a job that is gone"}},
		{"a history without a job", []string{"INSERT INTO deliveries VALUES (78, 1, 1, 0, 0, 'nacked', NULL, NULL)"}, queue.Finding{ID: 78, Text: "a delivery row is left of a job that is gone"}},
		{"a history of what hasn't been", []string{"INSERT INTO deliveries VALUES (3, 4, 1, 0, 0, 'nacked', NULL, NULL)"},
			queue.Finding{Queue: "default", ID: 3, Text: "its history tells of delivery 4, its last one was 3"}},
		{"a long history", []string{"UPDATE messages SET delivery = 30 WHERE id = 3", "DROP TRIGGER deliveries_trim",
			"WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 22) INSERT INTO deliveries SELECT 3, i, 1, 0, 0, 'nacked', NULL, NULL FROM n",
			"CREATE TRIGGER deliveries_trim AFTER INSERT ON deliveries BEGIN SELECT 1; END"}, queue.Finding{ID: 3, Text: "its history has 22 entries of at most 20"}},
		{"the sequence", []string{"UPDATE sqlite_sequence SET seq = 2 WHERE name = 'messages'"}, queue.Finding{Text: "the last id that was given is said to be 2, but there is a job 6"}},
		{"a trigger", []string{"DROP TRIGGER messages_delete"}, queue.Finding{Text: "the trigger messages_delete is missing: another program has dropped it"}},
		{"an index", []string{"DROP INDEX messages_failed"}, queue.Finding{Text: "the index messages_failed is missing: another program has dropped it"}},
		{"a key with two holders", []string{"DROP INDEX idx_messages_job_id", "UPDATE messages SET job_id = 'a' WHERE id = 5",
			"CREATE INDEX idx_messages_job_id ON messages(queue, job_id) WHERE job_id IS NOT NULL AND (key_scope = 0 OR status < 2)"},
			queue.Finding{Queue: "default", ID: 1, Text: `2 jobs hold the job_id "a", this is the first`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			lived(t, dir)
			if len(c.breaks) > 0 {
				sqliteFile(t, filepath.Join(dir, "localqueue.db"), c.breaks...)
			}
			for _, quick := range []bool{true, false} {
				found := checked(t, dir, quick)
				if c.breaks == nil {
					same(t, "findings", []queue.Finding(nil), found)
					continue
				}
				var told bool
				for _, f := range found {
					told = told || f == c.want
				}
				if !told {
					t.Errorf("quick %v: the findings %+v have not %+v", quick, found, c.want)
				}
			}
		})
	}
}

func TestCheckBoundsItsFindings(t *testing.T) {
	dir := t.TempDir()
	lived(t, dir)
	sqliteFile(t, filepath.Join(dir, "localqueue.db"),
		"WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO payloads SELECT i, x'01' FROM n",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO queues (name, acked) SELECT 'q' || i, 1 FROM n")
	same(t, "findings", 200, len(checked(t, dir, true)))
}

func TestCheckEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	lived(t, dir)
	s := openStore(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Check(ctx, false)
	matches(t, err, context.Canceled)
	found, err := s.Check(t.Context(), false) // and harms nobody
	ok(t, err)
	same(t, "findings", 0, len(found))
}

// TestCheckFindsDamageWhereverItIs overwrites each page in turn, in a copy of the file that this process has not open.
func TestCheckFindsDamageWhereverItIs(t *testing.T) {
	origin := t.TempDir()
	lived(t, origin)
	path := filepath.Join(origin, "localqueue.db")
	// A page in the freelist, too.
	sqliteFile(t, path, "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1010) INSERT INTO payloads SELECT i, zeroblob(2000) FROM n",
		"DELETE FROM payloads WHERE message_id >= 1000", "PRAGMA wal_checkpoint(TRUNCATE)")
	whole, err := os.ReadFile(path)
	ok(t, err)
	free := inspect(t, origin).FreePages
	const page = 2048
	silent := int64(0)
	for n := range len(whole) / page {
		dir := t.TempDir()
		broken := append([]byte(nil), whole...)
		copy(broken[n*page:], repeat("\xA5", page))
		ok(t, os.WriteFile(filepath.Join(dir, "localqueue.db"), broken, 0o600))
		s, err := queue.Open(dir)
		if err != nil {
			if !errors.Is(err, queue.ErrCorrupt) && !errors.Is(err, queue.ErrForeignFile) {
				t.Errorf("page %d: open says %v", n+1, err)
			}
			continue
		}
		found, err := s.Check(t.Context(), false)
		if err == nil && len(found) == 0 {
			silent++
		}
		for _, f := range found {
			if strings.Contains(f.Text, "\n") || f.Text == "" {
				t.Errorf("page %d: the finding %q is no line", n+1, f.Text)
			}
		}
		if err := s.Close(); err != nil && !errors.Is(err, queue.ErrCorrupt) {
			t.Errorf("page %d: close says %v", n+1, err)
		}
	}
	// Nobody can know what a page that is free should hold.
	if free == 0 || silent > free {
		t.Errorf("%d pages of damage were silent, %d pages are free", silent, free)
	}
}
