package queue_test

import (
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var clockCases = []conformanceCase{
	{name: "Rule43_AStepBackHidesNothingImmediate", run: func(t *testing.T, w *world) {
		w.mustPut("put")
		w.mustPut("in a batch")
		w.mustPut("nacked", priority(3))
		w.mustPut("released", priority(2))
		w.mustPut("retried", priority(1))
		w.ok(w.nack(w.mustGet(), errBoom))
		j, err := w.tryGetMany(2)
		w.ok(err)
		w.ok(w.release(j[0]))
		w.ok(w.release(j[1]))
		dead := w.mustPut("dead")
		w.ok(w.cancel(dead))
		w.ok(w.retry(dead))
		w.advance(-time.Hour)
		w.counts(queue.Stats{Ready: 6})
		rec, err := w.peek()
		w.ok(err)
		w.equal("peek", "nacked", string(rec.Payload))
		w.equal("all", []string{"nacked", "released", "retried", "put", "in a batch", "dead"}, w.drain())
	}},
	{name: "Rule43_AStepBackKeepsALeaseAndADelayByTheClock", run: func(t *testing.T, w *world) {
		w.mustPut("leased", priority(1))
		w.mustPut("delayed", delayed(time.Minute))
		j := w.mustGet()
		w.advance(-time.Hour)
		w.mustBeEmpty()
		until, _, err := w.heartbeat(time.Minute, j.Ref())
		w.ok(err)
		w.equal("a heartbeat never shortens", start.Add(time.Minute), until[0])
		extended, err := w.extend(j, time.Minute)
		w.ok(err)
		w.equal("extend sets it by the clock as it is", w.now().Add(time.Minute), extended)
		w.advance(time.Minute)
		w.lost(w.ack(j), queue.LossExpired)
		w.equal("again", 2, w.mustGet().Attempt)
		w.mustBeEmpty()
		w.advance(time.Hour)
		w.equal("in the end", []string{"leased", "delayed"}, w.drain())
	}},
	{name: "Rule43_AStepForwardEndsLeasesButOldReceiptsStayRefused", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		a := w.mustGet()
		w.advance(100 * 24 * time.Hour)
		b := w.mustGet()
		w.advance(-100 * 24 * time.Hour)
		w.lost(w.ack(a), queue.LossSuperseded)
		w.ok(w.ack(b))
		w.equal("history", 1, len(w.history(id)))
		w.mustBeEmpty()
	}},
	{name: "Rule43_AReceiverThatWaitsSeesEveryStepWithinAPoll", run: func(t *testing.T, w *world) {
		w.mustPut("x", delayed(time.Hour))
		get := inBackground(w.peer(0).comes)
		w.untilWaiting(1)
		w.advance(-2 * time.Hour)
		get.stillWaits(t)
		w.advance(3 * time.Hour)
		j, err := get.await(t)
		w.ok(err)
		w.equal("once", 1, j.Attempt)
		get = inBackground(w.peer(0).comes)
		w.untilWaiting(1)
		w.advance(-time.Hour)
		w.mustPut("after a step back")
		j, err = get.await(t)
		w.ok(err)
		w.equal("payload", "after a step back", string(j.Payload))
	}},
	{name: "Rule43_AStepBackBeforeAnAckKeepsTheOrderOfIds", run: func(t *testing.T, w *world) {
		first := w.mustPut("a")
		w.advance(-time.Hour)
		second := w.mustPut("b")
		w.equal("ids rise", true, second > first)
		w.equal("order", []string{"a", "b"}, w.drain())
		w.counts(queue.Stats{Acked: 2})
	}},
	{name: "Rule43_AgesAreNeverNegative", run: func(t *testing.T, w *world) {
		w.mustPut("x")
		w.advance(-time.Hour)
		st, err := w.stats()
		w.ok(err)
		w.equal("age", time.Duration(0), st.OldestAge)
	}},
}
