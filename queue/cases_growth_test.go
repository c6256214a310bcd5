package queue_test

import (
	"context"
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

// retained works n jobs through a queue that keeps acked ones for three seconds, of which each batch of a hundred takes a
// tenth. A Worker would apply the retention now and then. It tells the file's pages after each tenth of the jobs.
func retained(tb testing.TB, dir string, n int, claimed func(tenth int, took time.Duration)) (pages [10]int) {
	tb.Helper()
	ctx := context.Background()
	var clock atomic.Int64
	clock.Store(time.Now().UnixMilli())
	s := openStore(tb, dir, queue.WithDurability(queue.Normal), queue.WithClock(func() time.Time { return time.UnixMilli(clock.Load()) }))
	q := s.Default()
	ok(tb, q.KeepAcked(ctx, 3*time.Second))
	batch := make([]queue.NewJob, 100)
	for i := range batch {
		batch[i].Payload = payload128
		if i%10 == 0 { // stored beside the row
			batch[i].Payload = make([]byte, 3000)
		}
	}
	for done := 0; done < n; {
		tenth := 10 * done / n
		ok(tb, second(q.PutMany(ctx, batch)))
		began := time.Now()
		one, err := q.TryGet(ctx)
		ok(tb, err)
		if claimed != nil {
			claimed(tenth, time.Since(began))
		}
		rest, err := q.TryGetMany(ctx, len(batch))
		ok(tb, err)
		refs := []queue.Ref{one.Ref()}
		for _, j := range rest {
			refs = append(refs, j.Ref())
		}
		ok(tb, firstOf(q.AckMany(ctx, refs)))
		clock.Add(100)
		if done += len(refs); done%1000 == 0 {
			ok(tb, second(q.ApplyRetention(ctx)))
		}
		pages[tenth] = max(pages[tenth], pagesOf(tb, dir))
	}
	return pages
}

// pagesOf is the size of the database, whether it is in the file or still in the WAL.
func pagesOf(tb testing.TB, dir string) (n int) {
	tb.Helper()
	db, err := openRaw(dir)
	ok(tb, err)
	defer func() { ok(tb, db.Close()) }()
	ok(tb, db.QueryRow("PRAGMA page_count").Scan(&n))
	return n
}

func TestCase19_WithARetentionTheFileStaysAsLargeAsWhatIsKept(t *testing.T) {
	dir := t.TempDir()
	n := sized(30_000, 1_000_000)
	pages := retained(t, dir, n, nil)
	first, last := pages[0], pages[9]
	if last > 2*first {
		t.Errorf("the file has %d pages in the last tenth of %d jobs, %d in the first", last, n, first)
	}
	s := openStore(t, dir)
	st, err := s.Default().Stats(t.Context())
	ok(t, err)
	if st.Acked > 5_000 {
		t.Errorf("%d acked jobs are kept; three seconds' are 3,000", st.Acked)
	}
	found, err := s.Check(t.Context(), true)
	ok(t, err)
	same(t, "findings", 0, len(found))
}

// BenchmarkWithRetention reports what a claim costs in the last tenth of the jobs of a busy queue, in
// multiples of the first tenth's, and how large the file is then.
func BenchmarkWithRetention(b *testing.B) {
	for b.Loop() {
		var took [10][]time.Duration
		pages := retained(b, b.TempDir(), 1_000_000, func(tenth int, d time.Duration) { took[tenth] = append(took[tenth], d) })
		for _, p := range []struct {
			name string
			of   float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			at := func(tenth int) time.Duration {
				slices.Sort(took[tenth])
				return took[tenth][int(float64(len(took[tenth])-1)*p.of)]
			}
			b.ReportMetric(float64(at(9).Microseconds()), "us-"+p.name)
			b.ReportMetric(float64(at(9))/float64(at(0)), "x-"+p.name)
		}
		b.ReportMetric(float64(pages[9])/float64(pages[0]), "x-pages")
	}
}
