package queue_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

// BenchmarkPutBesidePurge purges many acked jobs of one size while another Store puts, and reports how long the slowest put
// waited, and what was purged in a second.
func BenchmarkPutBesidePurge(b *testing.B) {
	for _, c := range []struct {
		name       string
		jobs, size int
	}{{"1000000x128B", 1_000_000, 128}, {"20000x10kB", 20_000, 10_000}, {"4000x100kB", 4_000, 100_000}, {"200x2MB", 200, 2_000_000}} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				s := queuetest.Open(b, queue.WithDurability(queue.Normal))
				finished(b, s, c.jobs, c.size)
				other, err := queue.Open(s.Dir(), queue.WithDurability(queue.Normal))
				if err != nil {
					b.Fatal(err)
				}
				ctx := context.Background()
				b.StartTimer()
				purged := inBackground(func() (int, error) { return s.Default().Purge(ctx, queue.PurgeOptions{}) })
				var end answer[int]
				for running := true; running; {
					start := time.Now()
					if err := second(other.Default().Put(ctx, payload128)); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(start))
					select {
					case end = <-purged.done:
						running = false
					case <-time.After(500 * time.Microsecond):
					}
				}
				b.StopTimer()
				if end.err != nil || end.value != c.jobs {
					b.Fatal(end.value, end.err)
				}
				if err := other.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-worst")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
			b.ReportMetric(float64(c.jobs)*float64(b.N)/b.Elapsed().Seconds(), "purged/s")
		})
	}
}

// finished puts n jobs of a size and acks them.
func finished(b *testing.B, s *queue.Store, n, size int) {
	b.Helper()
	if size <= 128 {
		crowd(b, s, n, "acked")
		return
	}
	ctx, q := context.Background(), s.Default()
	payload := make([]byte, size)
	batch := min(n, 1000, max(1, 20_000_000/size))
	for left := n; left > 0; left -= batch {
		if err := second(q.PutMany(ctx, slices.Repeat([]queue.NewJob{{Payload: payload}}, min(batch, left)))); err != nil {
			b.Fatal(err)
		}
		jobs, err := q.TryGetMany(ctx, batch)
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
	}
}
