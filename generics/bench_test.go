package generics

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

// BenchmarkWorker is the cost of one job whose handler does nothing.
func BenchmarkWorker(b *testing.B) {
	for _, c := range []struct{ handlers, ahead int }{{1, 0}, {1, 8}, {2, 0}, {2, 2}, {8, 0}, {8, 8}, {64, 0}, {64, 64}} {
		b.Run(fmt.Sprintf("handlers=%d/ahead=%d", c.handlers, c.ahead), func(b *testing.B) {
			q, err := Open[int](b.TempDir(), queue.WithDurability(queue.Normal), queue.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = q.Close() }()
			for left := b.N; left > 0; left -= 1000 {
				if _, err := q.PutMany(b.Context(), make([]int, min(left, 1000))); err != nil {
					b.Fatal(err)
				}
			}
			w := NewWorker(q, func(context.Context, *Job[int]) error { return nil }, Concurrency(c.handlers), Prefetch(c.ahead), UntilEmpty())
			b.ResetTimer()
			if err := w.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
			if n := w.Counts().Acked; n != int64(b.N) {
				b.Fatalf("%d acked of %d", n, b.N)
			}
		})
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
