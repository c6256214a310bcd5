package queue_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
	"golang.org/x/sys/unix"
)

// crowd puts n rows of one state into the default queue by plain SQL, faster than n operations would.
func crowd(b *testing.B, s *queue.Store, n int, state string) {
	b.Helper()
	columns := map[string]string{ // status, delayed, attempts, delivery, available_at, lease_until, receipt, reason
		"ready":     "0, 0, 0, 0, :now, NULL, NULL, NULL",
		"delayed":   "0, 1, 0, 0, :now + 3600000 + i, NULL, NULL, NULL",
		"due":       "0, 1, 0, 0, :now - 1, NULL, NULL, NULL",
		"leased":    "1, 0, 1, 1, :now, :now + 3600000 + i, '1-' || lower(hex(randomblob(16))), NULL",
		"expired":   "1, 0, 1, 1, :now, :now - 1, '1-' || lower(hex(randomblob(16))), NULL",
		"acked":     "2, 0, 1, 1, :now, NULL, NULL, NULL",
		"dead":      "3, 0, 4, 4, :now, NULL, NULL, 'permanent'",
		"elsewhere": "0, 0, 0, 0, :now, NULL, NULL, NULL",
	}[state]
	name := "default"
	if state == "elsewhere" {
		name = "another"
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.Dir(), "localqueue.db")+"?_busy_timeout=10000&_synchronous=off")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	_, err = db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :n)
		INSERT INTO messages (queue, payload, max_attempts, created_at, updated_at, priority, status, delayed, attempts, delivery, available_at, lease_until, receipt, reason)
		SELECT :name, zeroblob(128), 4, :now, :now, 0, `+columns+` FROM n`,
		sql.Named("n", n), sql.Named("name", name), sql.Named("now", time.Now().UnixMilli()))
	if err == nil { // or the operations that follow pay for all of it, down to the disk
		_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
		unix.Sync()
	}
	if err != nil {
		b.Fatal(err)
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkWithBacklog measures the operations of a job's life beside a thousand rows of a state and beside a million, in
// turns on two files, and reports the ratios of the medians.
func BenchmarkWithBacklog(b *testing.B) {
	for _, state := range []string{"ready", "delayed", "leased", "acked", "dead", "elsewhere"} {
		b.Run(state, func(b *testing.B) {
			var lives [2]*life
			for i, n := range []int{1_000, 1_000_000} {
				s := queuetest.Open(b, queue.WithDurability(queue.Normal))
				crowd(b, s, n, state)
				brief, err := s.Queue(queue.DefaultQueue, queue.WithLease(time.Millisecond))
				if err != nil {
					b.Fatal(err)
				}
				lives[i] = &life{b: b, q: s.Default(), brief: brief, took: map[string][]time.Duration{}}
			}
			for b.Loop() {
				for _, l := range lives {
					l.live()
				}
			}
			for _, op := range []string{"claim", "heartbeat", "ack", "promote", "reclaim", "stats"} {
				small, large := median(lives[0].took[op]), median(lives[1].took[op])
				b.ReportMetric(float64(large.Microseconds()), "us-"+op)
				b.ReportMetric(float64(large)/float64(small), "x-"+op)
			}
		})
	}
}

// life takes a few jobs through a queue and times what happens to them.
type life struct {
	b     *testing.B
	q     *queue.Queue
	brief *queue.Queue // the same, with leases of a millisecond
	took  map[string][]time.Duration
}

func (l *life) time(op string, fn func() error) {
	start := time.Now()
	err := fn()
	l.took[op] = append(l.took[op], time.Since(start))
	if err != nil {
		l.b.Fatal(op, err)
	}
}

func (l *life) live() {
	ctx := context.Background()
	first := queue.Priority(1) // before the backlog
	put := func(opts ...queue.PutOption) {
		if _, err := l.q.Put(ctx, payload128, append(opts, first)...); err != nil {
			l.b.Fatal(err)
		}
	}
	var job *queue.Job
	put()
	l.time("claim", func() (err error) { job, err = l.q.TryGet(ctx); return err })
	l.time("heartbeat", func() error { return second(l.q.Heartbeat(ctx, []queue.Ref{job.Ref()}, time.Hour)) })
	l.time("ack", func() error { return job.Ack(ctx) })

	put(queue.Delay(time.Millisecond))
	time.Sleep(3 * time.Millisecond)
	l.time("promote", func() (err error) { job, err = l.q.TryGet(ctx); return err })
	if err := job.Ack(ctx); err != nil {
		l.b.Fatal(err)
	}

	put()
	if _, err := l.brief.TryGet(ctx); err != nil {
		l.b.Fatal(err)
	}
	time.Sleep(3 * time.Millisecond)
	l.time("reclaim", func() (err error) { job, err = l.q.TryGet(ctx); return err })
	if err := job.Ack(ctx); err != nil {
		l.b.Fatal(err)
	}
	l.time("stats", func() error { return second(l.q.Stats(ctx)) })
}

// BenchmarkDrainAMillion works off a million jobs in batches, and compares the last tenth with the first.
func BenchmarkDrainAMillion(b *testing.B) {
	ctx := context.Background()
	for b.Loop() {
		b.StopTimer()
		s := queuetest.Open(b, queue.WithDurability(queue.Normal))
		crowd(b, s, 1_000_000, "ready")
		q := s.Default()
		b.StartTimer()
		var tenths [10]time.Duration
		for done := 0; done < 1_000_000; {
			start := time.Now()
			jobs, err := q.TryGetMany(ctx, 1000)
			if err != nil {
				b.Fatal(err)
			}
			refs := make([]queue.Ref, len(jobs))
			for i, j := range jobs {
				refs[i] = j.Ref()
			}
			if err := second(q.AckMany(ctx, refs)); err != nil {
				b.Fatal(err)
			}
			tenths[done/100_000] += time.Since(start)
			done += len(jobs)
		}
		perSecond(b, 1_000_000)
		b.ReportMetric(float64(tenths[9])/float64(tenths[0]), "last/first-tenth")
	}
}

// BenchmarkAMillionAtOnce lets a million delayed jobs fall due, or a million leases end, at one instant, and reports the
// slowest single operation while they are worked off.
func BenchmarkAMillionAtOnce(b *testing.B) {
	for _, state := range []string{"due", "expired"} {
		b.Run(state, func(b *testing.B) {
			s := queuetest.Open(b, queue.WithDurability(queue.Normal))
			crowd(b, s, 1_000_000, state)
			q := s.Default()
			ctx := context.Background()
			var took []time.Duration
			timed := func(fn func() error) {
				start := time.Now()
				if err := fn(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			for b.Loop() {
				var job *queue.Job
				timed(func() (err error) { _, err = q.Put(ctx, payload128); return err })
				timed(func() (err error) { job, err = q.TryGet(ctx); return err })
				timed(func() error { return job.Ack(ctx) })
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-worst")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
		})
	}
}

// BenchmarkWALSize puts and gets 200 000 jobs in one process and reports the largest size of the WAL, in MB.
func BenchmarkWALSize(b *testing.B) {
	for b.Loop() {
		s := queuetest.Open(b, queue.WithDurability(queue.Normal))
		q := s.Default()
		ctx := context.Background()
		var most int64
		look := func(i int) {
			if i%100 == 0 {
				st, err := os.Stat(filepath.Join(s.Dir(), "localqueue.db-wal"))
				if err != nil {
					b.Fatal(err)
				}
				most = max(most, st.Size())
			}
		}
		for i := range 200_000 {
			if _, err := q.Put(ctx, payload128); err != nil {
				b.Fatal(err)
			}
			look(i)
		}
		for i := range 200_000 {
			job, err := q.TryGet(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if err := job.Ack(ctx); err != nil {
				b.Fatal(err)
			}
			look(i)
		}
		b.ReportMetric(float64(most)/(1<<20), "MB-WAL")
	}
}
