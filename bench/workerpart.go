//go:build unix

package bench

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"

	"github.com/localqueue/localqueue/generics"
)

// work lets a generics.Worker work off what is in the queue, with a handler that does nothing.
func (p *part) work(into histograms) error {
	q, err := generics.On[[]byte](p.q.Store(), p.q.Name())
	if err != nil {
		return err
	}
	var mu sync.Mutex
	handler := func(_ context.Context, job *generics.Job[[]byte]) error {
		p.journal.write(record{event: evClaim, id: job.ID, delivery: job.Delivery, at: monotonic(), until: job.LeaseUntil.UnixMilli()})
		return nil
	}
	done := func(e generics.Event) {
		if e.Outcome != generics.Acked {
			return
		}
		at := monotonic()
		r := record{event: evAck, id: e.Job.ID, delivery: e.Job.Delivery, at: at}
		p.journal.write(r)
		if plantedTwice() {
			p.journal.write(r)
		}
		p.turns.complete(at)
		p.unit(at, 1)
		if len(e.Job.Payload) >= stampSize {
			mu.Lock()
			into.record(opWhole, at-int64(binary.LittleEndian.Uint64(e.Job.Payload)))
			mu.Unlock()
		}
	}
	w := generics.NewWorker(q.With(generics.Bytes()), handler, generics.Concurrency(p.task.Goroutines), generics.UntilDrained(),
		generics.OnDone(done), generics.Logger(slog.New(slog.DiscardHandler)))
	return w.Run(context.Background())
}
