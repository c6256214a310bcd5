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

// BenchmarkClaimWithBacklog measures a claim beside a thousand rows of a state and beside a million, in turns on two
// files, and reports the ratio of the medians.
func BenchmarkClaimWithBacklog(b *testing.B) {
	for _, state := range []string{"ready", "delayed", "leased", "acked", "dead", "elsewhere"} {
		b.Run(state, func(b *testing.B) {
			var queues [2]*queue.Queue
			for i, n := range []int{1_000, 1_000_000} {
				s := queuetest.Open(b, queue.WithDurability(queue.Normal))
				crowd(b, s, n, state)
				queues[i] = s.Default()
			}
			ctx := context.Background()
			var took [2][]time.Duration
			for b.Loop() {
				for i, q := range queues {
					if state != "ready" {
						if _, err := q.Put(ctx, payload128); err != nil {
							b.Fatal(err)
						}
					}
					start := time.Now()
					job, err := q.TryGet(ctx)
					took[i] = append(took[i], time.Since(start))
					if err != nil {
						b.Fatal(err)
					}
					if err := job.Release(ctx); err != nil {
						b.Fatal(err)
					}
					if state != "ready" { // leave the backlog as it was
						if err := q.Delete(ctx, job.ID); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			small, large := median(took[0]), median(took[1])
			b.ReportMetric(float64(small.Nanoseconds()), "ns/claim@10^3")
			b.ReportMetric(float64(large.Nanoseconds()), "ns/claim@10^6")
			b.ReportMetric(float64(large)/float64(small), "ratio")
		})
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
