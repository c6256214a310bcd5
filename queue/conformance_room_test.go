package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var roomCases = []conformanceCase{
	{name: "Rule10_TryPutIsRefusedAtTheLimit", run: func(t *testing.T, w *world) {
		q := w.options(atMost(3))
		q.mustPut("ready")
		q.mustPut("delayed", delayed(time.Hour))
		j := q.mustGet()
		q.mustPut("one more")
		_, err := q.tryPut("too many")
		w.is(err, queue.ErrFull)
		w.says(err, "WithMaxPending", "3")
		w.is(second(q.tryPutMany(spec("x"))), queue.ErrFull)
		for _, foreign := range []bool{false, true} { // no waiting inside a transaction
			w.is(w.run("tx", wireRequest{Steps: []wireRequest{q.putStep("x")}, Foreign: foreign}).Err.error, queue.ErrFull)
			w.is(w.run("tx", wireRequest{Steps: []wireRequest{q.putManyStep(spec("x"))}, Foreign: foreign}).Err.error, queue.ErrFull)
		}
		w.counts(queue.Stats{Ready: 2, Delayed: 1, Processing: 1})
		w.ok(q.ack(j))
		w.ok(second(q.tryPut("fits")))
		w.mustPut("a Queue without a limit isn't refused")
		w.on("other").options(atMost(3)).mustPut("another queue has room")
	}},
	{name: "Rule10_OnlyNewJobsNeedRoom", run: func(t *testing.T, w *world) {
		q := w.options(atMost(2))
		a := q.mustPut("a", key("a"))
		done := q.mustPut("done", key("done"))
		w.ok(w.cancel(done))
		q.mustPut("b", key("b"), whilePending())
		for k, id := range map[string]int64{"a": a, "done": done} {
			res, err := q.tryPut("again", key(k))
			w.ok(err)
			w.equal("a duplicate", queue.PutResult{ID: id, Duplicate: true}, res)
		}
		res, err := q.tryPutMany(spec("x", key("a")), spec("y", key("b")), spec("z", key("a")))
		w.ok(err)
		w.equal("duplicates", 3, len(res))
		w.is(second(q.tryPutMany(spec("x", key("a")), spec("y", key("c")))), queue.ErrFull)
		w.counts(queue.Stats{Ready: 2, Failed: 1})
	}},
	{name: "Rule10_ABatchThatCanNeverFitFailsAtOnce", run: func(t *testing.T, w *world) {
		q := w.options(atMost(2))
		w.is(second(q.putMany(spec("a"), spec("b"), spec("c"))), queue.ErrFull)
		res, err := q.putMany(spec("a", key("a")), spec("b"), spec("a", key("a")), spec("a", key("a")))
		w.ok(err) // only two are new
		w.equal("ids", res[0].ID, res[3].ID)
		w.is(second(q.putMany(spec("a"), spec("b"), spec("c"))), queue.ErrFull)
		w.counts(queue.Stats{Ready: 2})
	}},
	{name: "Rule10_AWaitingPutEndsWithItsContext", run: func(t *testing.T, w *world) {
		q := w.options(atMost(1))
		q.mustPut("a")
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		defer cancel()
		w.is(second(q.putUntil(ctx, "b")), context.DeadlineExceeded)
		ctx, cancel = context.WithCancel(context.Background())
		put := inBackground(func() (queue.PutResult, error) { return q.putUntil(ctx, "b") })
		w.untilWaiting(1)
		cancel()
		_, err := put.await(t)
		w.is(err, context.Canceled)
		w.counts(queue.Stats{Ready: 1})
	}},
	{name: "Rule10_WhatMakesNoRoomWakesNoPut", run: func(t *testing.T, w *world) {
		q := w.options(atMost(1)).peer(0)
		q.mustPut("a", deliveries(9))
		put := inBackground(func() (queue.PutResult, error) { return q.put("b") })
		w.untilWaiting(1)
		w.ok(w.nack(w.mustGet(), errBoom))
		w.ok(w.release(w.mustGet()))
		w.mustGet()
		w.advance(queue.DefaultLease)
		got, err := w.reclaim()
		w.ok(err)
		w.equal("reclaimed", queue.Reclaimed{Returned: 1}, got)
		put.stillWaits(t)
		w.ok(w.ack(w.mustGet()))
		res, err := put.await(t)
		w.ok(err)
		w.equal("new", false, res.Duplicate)
	}},
	{name: "Rule10_OnlyPutsAreLimited", run: func(t *testing.T, w *world) {
		for range 4 {
			w.mustPut("backlog", deliveries(2))
		}
		q := w.options(atMost(1)) // opens over a larger backlog
		w.is(second(q.tryPut("x")), queue.ErrFull)
		jobs, err := q.tryGetMany(4)
		w.ok(err)
		w.ok(q.nack(jobs[0], errBoom))
		w.ok(q.release(jobs[1]))
		w.ok(q.fail(jobs[2], errBoom))
		w.ok(q.retry(jobs[2].ID))
		w.advance(queue.DefaultLease)
		w.ok(second(q.reclaim()))
		w.counts(queue.Stats{Ready: 4})
		for range 3 {
			w.ok(q.ack(q.mustGet()))
			w.is(second(q.tryPut("x")), queue.ErrFull)
		}
		w.ok(q.ack(q.mustGet()))
		w.ok(second(q.tryPut("x")))
	}},
	{name: "Rule10_TheLimitHoldsAcrossStores", run: func(t *testing.T, w *world) {
		const most, puts = 3, 12
		q := w.options(atMost(most))
		var tries []*pending[queue.PutResult]
		for i := range puts {
			tries = append(tries, inBackground(func() (queue.PutResult, error) { return q.peer(i).tryPut("x") }))
		}
		stored := 0
		for _, p := range tries {
			if _, err := p.await(t); err == nil {
				stored++
			} else {
				w.is(err, queue.ErrFull)
			}
		}
		w.equal("stored", most, stored)
		w.counts(queue.Stats{Ready: most})
	}},
	{name: "Rule10_WaitingPutsGetInOneByOne", run: func(t *testing.T, w *world) {
		q := w.options(atMost(1))
		q.mustPut("first")
		var puts []*pending[queue.PutResult]
		for i := range 5 {
			puts = append(puts, inBackground(func() (queue.PutResult, error) { return q.peer(i).put("x") }))
		}
		w.untilWaiting(5)
		for range 6 {
			var j *queue.Job
			w.until("the next job", func() (ok bool) {
				var err error
				j, err = w.tryGet()
				return err == nil
			})
			if st, err := w.stats(); err != nil || st.Ready+st.Processing > 1 {
				t.Fatalf("%+v, %v", st, err)
			}
			w.ok(w.ack(j))
		}
		for _, p := range puts {
			_, err := p.await(t)
			w.ok(err)
		}
		w.counts(queue.Stats{Acked: 6})
	}},
	{name: "Rule10_AWaitingBatchGetsInWhole", run: func(t *testing.T, w *world) {
		q := w.options(atMost(3))
		q.mustPut("a")
		q.mustPut("b")
		put := inBackground(func() ([]queue.PutResult, error) { return q.putMany(spec("c"), spec("d"), spec("c")) })
		w.untilWaiting(1)
		w.ok(w.ack(w.mustGet()))
		put.stillWaits(t)
		w.ok(w.ack(w.mustGet()))
		res, err := put.await(t)
		w.ok(err)
		w.equal("stored", 3, len(res))
		w.counts(queue.Stats{Ready: 3, Acked: 2})
	}},
	{name: "Rule10_AWaitingPutWhoseKeyIsTakenMeanwhileIsADuplicate", run: func(t *testing.T, w *world) {
		q := w.options(atMost(1))
		q.mustPut("a")
		put := inBackground(func() (queue.PutResult, error) { return q.put("b", key("k")) })
		w.untilWaiting(1)
		holder := w.mustPut("c", key("k")) // by a Queue without the limit
		w.ok(w.ack(w.mustGet()))
		w.ok(w.ack(w.mustGet()))
		res, err := put.await(t)
		w.ok(err)
		w.equal("the answer", queue.PutResult{ID: holder, Duplicate: true}, res)
	}},
}

// pending is a call that may wait.
type pending[T any] struct{ done chan answer[T] }

type answer[T any] struct {
	value T
	err   error
}

func inBackground[T any](call func() (T, error)) *pending[T] {
	p := &pending[T]{done: make(chan answer[T], 1)}
	go func() {
		v, err := call()
		p.done <- answer[T]{v, err}
	}()
	return p
}

// await returns what the call returned.
func (p *pending[T]) await(t testing.TB) (T, error) {
	t.Helper()
	select {
	case a := <-p.done:
		return a.value, a.err
	case <-time.After(2 * patience):
		t.Fatal("the call doesn't return")
		panic(errors.New("not reached"))
	}
}

// stillWaits fails if the call has returned, or does so within some ms: many times what a wake takes.
func (p *pending[T]) stillWaits(t testing.TB) {
	t.Helper()
	select {
	case a := <-p.done:
		t.Fatalf("the call returned %+v, %v; it was to wait", a.value, a.err)
	case <-time.After(30 * time.Millisecond):
	}
}
