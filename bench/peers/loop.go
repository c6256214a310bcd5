package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stuckAfter failures in a row end a loop: the queue can't do this work.
const stuckAfter = 20

// loop does a task on an open queue.
func loop(ctx context.Context, s session, t task) (measure, error) {
	// Operations get a context that can't be cancelled: for another one, some drivers start a goroutine per statement.
	free := context.WithoutCancel(ctx)
	source := &payloads{size: t.Payload}
	limit := time.Duration(t.Seconds * float64(time.Second))
	switch t.Work {
	case workPut:
		return inParallel(ctx, 1, limit, func() (int, error) { return 1, s.put(free, source.next()) })
	case workPutConcurrent:
		return inParallel(ctx, goroutines, limit, func() (int, error) { return 1, s.put(free, source.next()) })
	case workPutBatch:
		b, ok := s.(batchPutter)
		if !ok {
			return measure{}, &absentError{"it has no batch form of put"}
		}
		return inParallel(ctx, 1, limit, func() (int, error) { return t.Batch, b.putMany(free, source.many(t.Batch)) })
	case workGetAck, workGetAckBig:
		g, ok := s.(getter)
		if !ok {
			return measure{}, &absentError{"a job can't be received by hand"}
		}
		return draining(ctx, s, source, t, limit, func() (int, error) {
			_, ok, err := g.getAck(free)
			if !ok {
				return 0, err
			}
			return 1, err
		})
	case workGetAckBatch:
		g, ok := s.(batchGetter)
		if !ok {
			return measure{}, &absentError{"it has no batch form of get and ack"}
		}
		return draining(ctx, s, source, t, limit, func() (int, error) {
			got, err := g.getAckMany(free, t.Batch)
			return len(got), err
		})
	case workWorker:
		w, ok := s.(worker)
		if !ok {
			return measure{}, &absentError{"it has no worker"}
		}
		return working(ctx, s, w, source, t.Backlog, limit)
	default:
		return measure{}, fmt.Errorf("work %q is unknown", t.Work)
	}
}

// inParallel repeats op in n goroutines until the limit. An operation that fails isn't counted as work done.
func inParallel(ctx context.Context, n int, limit time.Duration, op func() (int, error)) (measure, error) {
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		m       measure
		stuck   error
		started = time.Now()
	)
	for range n {
		wg.Go(func() {
			jobs, row := 0, 0
			for row < stuckAfter && ctx.Err() == nil && time.Since(started) < limit {
				done, err := op()
				if err == nil {
					jobs, row = jobs+done, 0
					continue
				}
				row++
				mu.Lock()
				if m.Errors++; m.FirstError == "" {
					m.FirstError = err.Error()
				}
				if row == stuckAfter {
					stuck = err
				}
				mu.Unlock()
			}
			mu.Lock()
			m.Jobs += jobs
			mu.Unlock()
		})
	}
	wg.Wait()
	m.Seconds = time.Since(started).Seconds()
	if m.Jobs == 0 && stuck != nil {
		return m, stuck
	}
	return m, ctx.Err()
}

// draining repeats op, which takes jobs out, and puts a new backlog, outside the time taken, whenever none is left.
func draining(ctx context.Context, s session, source *payloads, t task, limit time.Duration, op func() (int, error)) (m measure, err error) {
	var taken time.Duration
	for taken < limit && ctx.Err() == nil {
		if err := fill(ctx, s, source, t.Backlog); err != nil {
			return m, err
		}
		started := time.Now()
		for left := t.Backlog; left > 0 && taken+time.Since(started) < limit; {
			n, err := op()
			if err != nil {
				return m, err
			}
			if n == 0 {
				return m, fmt.Errorf("the queue is empty with %d jobs still to come", left)
			}
			left -= n
			m.Jobs += n
		}
		taken += time.Since(started)
	}
	m.Seconds = taken.Seconds()
	return m, ctx.Err()
}

// working lets the queue's own worker take a backlog, and takes the time until it has stopped with its last jobs settled.
func working(ctx context.Context, s session, w worker, source *payloads, backlog int, limit time.Duration) (measure, error) {
	put := func(n int) error { return fill(ctx, s, source, n) }
	if p, ok := s.(workerPutter); ok {
		put = func(n int) error { return p.putForWorker(ctx, source.many(n)) }
	}
	if err := put(backlog); err != nil {
		return measure{}, err
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	var done atomic.Int64
	timer := time.AfterFunc(limit, stop)
	defer timer.Stop()
	started := time.Now()
	err := w.work(runCtx, handlers, func(string) {
		if done.Add(1) == int64(backlog) {
			stop()
		}
	})
	m := measure{Jobs: int(done.Load()), Seconds: time.Since(started).Seconds()}
	return m, errors.Join(err, ctx.Err())
}

// fill puts n jobs the fastest way the queue has.
func fill(ctx context.Context, s session, source *payloads, n int) error {
	b, batches := s.(batchPutter)
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		size := 1
		put := func() error { return s.put(ctx, source.next()) }
		if batches {
			size = min(n, batchSize)
			put = func() error { return b.putMany(ctx, source.many(size)) }
		}
		if err := put(); err != nil {
			return fmt.Errorf("putting the backlog: %w", err)
		}
		n -= size
	}
	return nil
}

// payloads makes payloads of one size that all differ. They are letters and digits: the same bytes in JSON.
type payloads struct {
	size int
	n    atomic.Int64
}

func (p *payloads) next() string {
	number := strconv.FormatInt(p.n.Add(1), 10)
	return number + strings.Repeat("x", max(0, p.size-len(number)))
}

func (p *payloads) many(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = p.next()
	}
	return list
}
