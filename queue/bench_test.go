package queue_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

// The payload of the benchmarks: 128 bytes. Compare with bench/limit, which runs the same statements in C:
//
//	make bench
var payload128 = bytes.Repeat([]byte("x"), 128)

func benchQueue(b *testing.B, d queue.Durability) *queue.Queue {
	return queuetest.Open(b, queue.WithDurability(d)).Default()
}

func each(b *testing.B, fn func(b *testing.B, d queue.Durability)) {
	for _, d := range []queue.Durability{queue.Normal, queue.Balanced, queue.Full} {
		b.Run(string(d), func(b *testing.B) { fn(b, d) })
	}
}

func perSecond(b *testing.B, jobs int) {
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}

func BenchmarkPut(b *testing.B) {
	each(b, func(b *testing.B, d queue.Durability) {
		q := benchQueue(b, d)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := q.Put(context.Background(), payload128); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, b.N)
	})
}

// 64 callers share commits; with strace -f -c -e trace=fsync this tells how many puts there are to a sync.
func BenchmarkPutOf64Goroutines(b *testing.B) {
	each(b, func(b *testing.B, d queue.Durability) {
		q := benchQueue(b, d)
		b.SetParallelism(64 / runtime.GOMAXPROCS(0))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := q.Put(context.Background(), payload128); err != nil {
					b.Error(err)
					return
				}
			}
		})
		perSecond(b, b.N)
	})
}

func fill(b *testing.B, q *queue.Queue, n int) {
	b.Helper()
	for n > 0 {
		batch := make([]queue.NewJob, min(n, 10000))
		for i := range batch {
			batch[i].Payload = payload128
		}
		if _, err := q.PutMany(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
		n -= len(batch)
	}
}

func BenchmarkGetAck(b *testing.B) {
	each(b, func(b *testing.B, d queue.Durability) {
		q := benchQueue(b, d)
		fill(b, q, 1000)
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if n++; n%1000 == 0 {
				b.StopTimer()
				fill(b, q, 1000)
				b.StartTimer()
			}
			job, err := q.TryGet(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			if err := job.Ack(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, b.N)
	})
}

// Large payloads have a row of their own; in the job's row every transition would rewrite them.
func BenchmarkGetAck100kB(b *testing.B) {
	for name, opts := range map[string][]queue.Option{"aside": nil, "inline": {queue.InlinePayloads()}} {
		b.Run(name, func(b *testing.B) {
			q := queuetest.Open(b, append(opts, queue.WithDurability(queue.Normal))...).Default()
			payload := bytes.Repeat([]byte("x"), 100_000)
			for b.Loop() {
				b.StopTimer()
				if _, err := q.Put(context.Background(), payload); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				job, err := q.TryGet(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				if err := job.Ack(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, b.N)
		})
	}
}

func BenchmarkPutMany1000(b *testing.B) {
	each(b, func(b *testing.B, d queue.Durability) {
		q := benchQueue(b, d)
		batch := make([]queue.NewJob, 1000)
		for i := range batch {
			batch[i].Payload = payload128
		}
		for b.Loop() {
			if _, err := q.PutMany(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, 1000*b.N)
	})
}

func BenchmarkGetManyAckMany1000(b *testing.B) {
	each(b, func(b *testing.B, d queue.Durability) {
		q := benchQueue(b, d)
		refs := make([]queue.Ref, 1000)
		for b.Loop() {
			b.StopTimer()
			fill(b, q, 1000)
			b.StartTimer()
			jobs, err := q.TryGetMany(context.Background(), 1000)
			if err != nil || len(jobs) != 1000 {
				b.Fatal(len(jobs), err)
			}
			for i, j := range jobs {
				refs[i] = j.Ref()
			}
			errs, err := q.AckMany(context.Background(), refs)
			if err != nil || errs[0] != nil {
				b.Fatal(err, errs)
			}
		}
		perSecond(b, 1000*b.N)
	})
}
