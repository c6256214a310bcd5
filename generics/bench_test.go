package generics

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

// BenchmarkWorkerNoop is the cost of one job whose handler does nothing. Give it jobs enough: -benchtime 100000x.
func BenchmarkWorkerNoop(b *testing.B) {
	for _, handlers := range []int{1, 8, 64} {
		for _, opts := range [][]WorkerOption{nil, {Prefetch(0)}} {
			b.Run(fmt.Sprintf("handlers=%d/ahead=%t", handlers, opts == nil), func(b *testing.B) {
				q, err := Open[int](b.TempDir(), queue.WithLogger(slog.New(slog.DiscardHandler)))
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = q.Close() }()
				for left := b.N; left > 0; left -= 1000 {
					if _, err := q.PutMany(b.Context(), make([]int, min(left, 1000))); err != nil {
						b.Fatal(err)
					}
				}
				w := NewWorker(q, func(context.Context, *Job[int]) error { return nil }, append(opts, Concurrency(handlers), UntilEmpty())...)
				b.ResetTimer()
				if err := w.Run(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
				if n := w.Counts().Acked; n != int64(b.N) {
					b.Fatalf("%d acked of %d", n, b.N)
				}
			})
		}
	}
}

// BenchmarkGetAck is the same without a Worker.
func BenchmarkGetAck(b *testing.B) {
	q, err := Open[int](b.TempDir(), queue.WithDurability(queue.Normal))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	for left := b.N; left > 0; left -= 1000 {
		if _, err := q.PutMany(b.Context(), make([]int, min(left, 1000))); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		job, err := q.Get(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := job.Ack(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
