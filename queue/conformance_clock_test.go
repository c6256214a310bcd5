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
	{name: "Rule43_AgesOfAnyQueueAndAnyJobAreNeverNegative", run: func(t *testing.T, w *world) {
		w.mustPut("promoted", delayed(time.Second))
		w.advance(time.Minute)
		w.mustPut("nacked", priority(1))
		w.ok(w.nack(w.mustGet(), errBoom))
		w.ok(w.release(w.mustGet()))
		for _, step := range []time.Duration{-time.Hour, 30 * time.Minute, -100 * 24 * time.Hour, 100 * 24 * time.Hour} {
			w.advance(step)
			all, err := w.queues()
			w.ok(err)
			for _, st := range all {
				if st.OldestAge < 0 {
					t.Errorf("after a step of %v the oldest job of %q is %v old", step, st.Queue, st.OldestAge)
				}
			}
		}
	}},
	{name: "Rule43_ADeliveryNeverEndsBeforeItBegan", run: func(t *testing.T, w *world) {
		ends := map[string]func(j *queue.Job){
			"nacked":    func(j *queue.Job) { w.ok(w.nack(j, errBoom)) },
			"failed":    func(j *queue.Job) { w.ok(w.fail(j, errBoom)) },
			"cancelled": func(j *queue.Job) { w.ok(w.cancel(j.ID)) },
			"lease_expired": func(j *queue.Job) { // its end was set by the clock that had stepped back
				w.ok(second(w.extend(j, time.Minute)))
				w.advance(time.Minute)
				w.ok(second(w.reclaim()))
			},
		}
		for outcome, end := range ends {
			id := w.mustPut(outcome, priority(1))
			j := w.mustGet()
			began := w.now()
			w.advance(-time.Hour)
			end(j)
			d := w.entries(id, 1)[0]
			w.equal(outcome, []any{outcome, began, began}, []any{d.Outcome, d.Start, d.End})
			w.advance(2 * time.Hour)
			w.drain()
		}
	}},
	{name: "Rule43_AfterAStepBackDelayedJobsComeLaterAndCanBeRunNow", run: func(t *testing.T, w *world) {
		w.mustPut("put", delayed(time.Minute))
		w.mustPut("nacked", priority(1))
		w.ok(w.nack(w.mustGet(), errBoom, after(time.Minute)))
		w.advance(-time.Hour)
		w.mustBeEmpty()
		w.advance(time.Minute)
		w.mustBeEmpty() // by the step later, too
		w.counts(queue.Stats{Ready: 2, Delayed: 2})
		id := w.mustPut("by hand", delayed(time.Minute))
		w.ok(w.runNow(id))
		w.advance(-time.Hour)
		w.equal("what was made due stays due", []string{"by hand"}, w.drain())
		w.advance(2 * time.Hour)
		w.equal("the others in the end", []string{"nacked", "put"}, w.drain())
	}},
	{name: "Rule43_AStepForwardDeliversWhatIsDelayedOnce", run: func(t *testing.T, w *world) {
		const n = 20
		for i := range n {
			w.mustPut("x", delayed(time.Duration(i+1)*time.Minute))
		}
		w.advance(time.Hour)
		for range n {
			j := w.mustGet()
			w.equal("attempt", 1, j.Attempt)
			w.advance(-time.Hour) // and back: what has come stays where it is
			w.ok(w.ack(j))
			w.advance(time.Hour)
		}
		w.mustBeEmpty()
		w.counts(queue.Stats{Acked: n})
	}},
	{name: "Rule43_ALeaseThatAStepForwardEndedIsNotRevivedByAStepBack", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		a := w.mustGet()
		w.advance(time.Hour)
		_, errs, err := w.heartbeat(time.Minute, a.Ref()) // nobody has reclaimed it yet
		w.ok(err)
		w.lost(errs[0], queue.LossExpired)
		w.lost(w.ack(a), queue.LossExpired)
		back, err := w.reclaim()
		w.ok(err)
		w.equal("reclaimed", queue.Reclaimed{Returned: 1}, back)
		w.advance(-time.Hour)
		for _, settle := range settles {
			w.lost(settle(&w.lane, a), queue.LossExpired)
		}
		_, errs, err = w.heartbeat(time.Minute, a.Ref())
		w.ok(err)
		w.lost(errs[0], queue.LossExpired)
		w.equal("what was reclaimed stays claimable", 2, w.mustGet().Attempt)
		d := w.entries(id, 1)[0]
		w.equal("history", []any{"lease_expired", start, start.Add(queue.DefaultLease)}, []any{d.Outcome, d.Start, d.End})
	}},
	{name: "Rule43_RetentionAndPurgeGoByTheClockAsItIs", run: func(t *testing.T, w *world) {
		removed := func(what string, want int, n int, err error) {
			t.Helper()
			w.ok(err)
			w.equal(what, want, n)
		}
		retained := func(what string, want int) {
			t.Helper()
			n, err := w.applyRetention()
			removed(what, want, n, err)
		}
		purged := func(what string, want int) {
			t.Helper()
			n, err := w.purge(time.Minute, true)
			removed(what, want, n, err)
		}
		w.ok(w.keepAcked(time.Minute))
		inState(&w.lane, queue.Acked)
		inState(&w.lane, queue.Failed)
		w.advance(-time.Hour)
		inState(&w.lane, queue.Acked)
		w.advance(30 * time.Second)
		retained("nothing is old yet", 0)
		purged("nor for a purge", 0)
		w.advance(time.Minute)
		retained("the job of after the step, not one that is stamped ahead", 1)
		w.advance(time.Hour - time.Minute)
		retained("the other, at its age by the clock", 0)
		w.advance(30 * time.Second)
		retained("the other, at its age by the clock", 1)
		purged("the dead letter as well", 1)
		inState(&w.lane, queue.Acked)
		w.advance(100 * 24 * time.Hour)
		retained("a step forward makes old", 1)
	}},
	{name: "Rule43_APutThatWaitsForRoomGetsItAcrossSteps", run: func(t *testing.T, w *world) {
		q := w.options(atMost(1))
		q.mustPut("first", deliveries(1))
		j := q.mustGet()
		waits := inBackground(func() (queue.PutResult, error) { return q.peer(0).put("second", deliveries(1)) })
		w.untilWaiting(1)
		w.advance(-time.Hour)
		waits.stillWaits(t)
		w.ok(q.ack(j))
		w.ok(second(waits.await(t)))
		q.mustGet()
		waits = inBackground(func() (queue.PutResult, error) { return q.peer(0).put("third") })
		w.untilWaiting(1)
		w.advance(2 * time.Hour) // the lease ends by it, and with it the last delivery
		w.ok(second(w.reclaim()))
		w.ok(second(waits.await(t)))
		w.counts(queue.Stats{Ready: 1, Acked: 1, Failed: 1})
	}},
	{name: "Rule43_HeartbeatsKeepALeaseAcrossAStepBack", run: func(t *testing.T, w *world) {
		w.mustPut("x")
		j := w.mustGet()
		for range 5 { // each step makes the stored end lie further ahead; no heartbeat shortens it, none fails
			w.advance(-10 * time.Minute)
			_, errs, err := w.heartbeat(queue.DefaultLease, j.Ref())
			w.ok(err)
			w.ok(errs[0])
			w.mustBeEmpty()
		}
		w.advance(50 * time.Minute)
		for range 6 { // and they go on when the clock is there again
			w.advance(queue.DefaultLease / 3)
			_, errs, err := w.heartbeat(queue.DefaultLease, j.Ref())
			w.ok(err)
			w.ok(errs[0])
		}
		w.ok(w.ack(j))
	}},
}
