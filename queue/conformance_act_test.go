package queue_test

import (
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var actCases = []conformanceCase{
	{name: "Rule32_ALeasedJobIsNotDeleted", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		w.is(w.delete(id), queue.ErrLeased)
		w.advance(queue.DefaultLease)
		w.is(w.delete(id), queue.ErrLeased) // ended, but nothing has reclaimed it
		w.ok(second(w.reclaim()))
		w.ok(w.delete(id))
		w.is(w.delete(id), queue.ErrNotFound)
		w.lost(w.ack(j), queue.LossGone)
	}},
	{name: "Rule32_DeleteTakesPayloadAndHistoryAlong", run: func(t *testing.T, w *world) {
		id := w.mustPut(repeat("x", 5000), key("k"))
		w.ok(w.nack(w.mustGet(), errBoom))
		w.ok(w.delete(id))
		w.equal("side rows", 0, w.number("SELECT (SELECT count(*) FROM payloads) + (SELECT count(*) FROM deliveries)"))
		w.mustPut("y", key("k"))
	}},
	{name: "Rule32_DeleteInBulkGoesByItsFilter", run: func(t *testing.T, w *world) {
		for range 2 {
			for _, s := range []queue.State{queue.Acked, queue.Failed, queue.Delayed, queue.Leased, queue.Ready} {
				if q := w.on(string(s)); s == queue.Ready {
					q.mustPut("x")
				} else {
					inState(q, s)
				}
			}
			w.advance(time.Second)
		}
		for _, s := range []queue.State{queue.Acked, queue.Failed, queue.Delayed, queue.Ready} {
			q := w.on(string(s))
			del := func(f queue.DeleteFilter, want int) {
				t.Helper()
				n, err := q.deleteMany(f)
				w.ok(err)
				w.equal("deleted", want, n)
			}
			have := len(q.ids(s))
			for _, other := range allStates {
				if other != s && other != queue.Leased {
					del(queue.DeleteFilter{State: other}, 0)
				}
			}
			del(queue.DeleteFilter{State: s, DryRun: true}, have)
			del(queue.DeleteFilter{State: s, OlderThan: time.Hour}, 0)
			del(queue.DeleteFilter{State: s, OlderThan: 2 * time.Second}, 1)
			del(queue.DeleteFilter{State: s}, have-1)
			w.equal("left", 0, len(q.ids(s)))
		}
		for _, f := range []queue.DeleteFilter{{}, {State: queue.Leased}, {State: "odd"}, {State: queue.Acked, OlderThan: -1}} {
			w.is(second(w.deleteMany(f)), queue.ErrInvalid)
		}
		w.on("leased").counts(queue.Stats{Processing: 2})
	}},
	{name: "Rule32_DeleteInBulkGoesOnOverManySteps", run: func(t *testing.T, w *world) {
		const n = 1100
		for range 10 { // ids of more than one range
			jobs := make([]jobSpec, n)
			for i := range jobs {
				jobs[i] = spec("x")
			}
			w.ok(second(w.putMany(jobs...)))
		}
		w.raw("UPDATE sqlite_sequence SET seq = ? WHERE name = 'messages'", int64(1)<<52) // a gap that no walk by ids gets over
		w.mustPut("beyond it")
		for _, dry := range []bool{true, false} {
			removed, err := w.deleteMany(queue.DeleteFilter{State: queue.Ready, DryRun: dry})
			w.ok(err)
			w.equal("deleted", 10*n+1, removed)
		}
	}},
	{name: "Rule32_CancelEndsAJobThatHasNotFinished", run: func(t *testing.T, w *world) {
		for _, s := range allStates {
			q := w.on(string(s))
			j := inState(q, s)
			before := q.mustShow(j.Ref().ID)
			err := q.cancel(j.Ref().ID)
			if s == queue.Acked || s == queue.Failed {
				w.is(err, queue.ErrFinished)
				w.says(err, string(s))
				w.equal("job", before, q.mustShow(j.Ref().ID))
				continue
			}
			w.ok(err)
			rec := q.mustShow(j.Ref().ID)
			w.equal("the end", []any{queue.Failed, queue.Cancelled, "", time.Time{}, before.Attempts}, []any{rec.State, rec.Reason, rec.Receipt, rec.LeaseUntil, rec.Attempts})
			w.is(q.cancel(j.Ref().ID), queue.ErrFinished)
			q.counts(queue.Stats{Failed: 1})
		}
	}},
	{name: "Rule32_ACancelledLeaseIsLostWithThatCause", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		w.ok(w.cancel(id))
		_, errs, err := w.heartbeat(time.Minute, j.Ref())
		w.ok(err)
		w.is(errs[0], queue.ErrLeaseLost, queue.ErrCancelled)
		w.equal("outcome", "cancelled", w.entries(id, 1)[0].Outcome)
		w.mustBeEmpty()
	}},
	{name: "Rule32_RunNowMakesADelayedJobDue", run: func(t *testing.T, w *world) {
		id := w.mustPut("x", delayed(time.Hour))
		w.advance(time.Second)
		w.ok(w.runNow(id))
		rec := w.mustShow(id)
		w.equal("due", []any{queue.Ready, w.now()}, []any{rec.State, rec.AvailableAt})
		w.counts(queue.Stats{Ready: 1})
		w.is(w.runNow(id), queue.ErrNotDelayed)
		j := w.mustGet()
		w.equal("got", id, j.ID)
		w.ok(w.nack(j, errBoom, after(time.Hour)))
		w.ok(w.runNow(id))
		w.equal("again", id, w.mustGet().ID)
	}},
}

var oddRowCases = []conformanceCase{
	{name: "Rule33_ALeaseWithoutAnEndIsFoundAndFreed", run: func(t *testing.T, w *world) {
		id, last := w.mustPut("x"), w.mustPut("y", deliveries(1))
		other := w.mustPut("z")
		j := w.mustGet()
		w.mustGet()
		w.raw("UPDATE messages SET lease_until = NULL WHERE queue = 'jobs' AND status = 1")
		w.finds(id, "without an end")
		w.finds(last, "without an end")
		w.counts(queue.Stats{Ready: 1, Processing: 2, Expired: 2})
		w.is(w.ack(j), queue.ErrLeaseLost)
		w.equal("reclaimed", queue.Reclaimed{Returned: 1, Failed: 1}, w.mustReclaim())
		w.equal("failed", queue.LeaseExpired, w.mustShow(last).Reason)
		w.equal("order", []int64{id, other}, []int64{w.mustGet().ID, w.mustGet().ID})
	}},
	{name: "Rule33_ALeaseWithoutAnEndIsFreedByAClaimToo", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		w.mustGet()
		w.raw("UPDATE messages SET lease_until = NULL WHERE id = ?", id)
		j := w.mustGet()
		w.equal("delivered again", []any{id, 2}, []any{j.ID, j.Attempt})
	}},
	{name: "Rule33_TooManyAttemptsAreFoundAndFreed", run: func(t *testing.T, w *world) {
		over, fine := w.mustPut("x", deliveries(2)), w.mustPut("y")
		w.mustGet()
		w.mustGet()
		w.raw("UPDATE messages SET attempts = 7, delivery = 7 WHERE id = ?", over)
		w.finds(over, "attempts")
		w.advance(queue.DefaultLease)
		w.equal("the others go on", fine, w.mustGet().ID)
		rec := w.mustShow(over)
		w.equal("freed", []any{queue.Failed, queue.LeaseExpired}, []any{rec.State, rec.Reason})
	}},
	{name: "Rule33_ALeaseWithoutAReceiptIsFoundAndFreed", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		w.raw("UPDATE messages SET receipt = NULL WHERE id = ?", id)
		w.finds(id, "without a receipt")
		w.is(w.ack(j), queue.ErrLeaseLost)
		w.is(w.ack(aRef{id, ""}), queue.ErrLeaseLost)
		w.advance(queue.DefaultLease)
		w.ok(w.ack(w.mustGet()))
	}},
	{name: "Rule33_AJobThatIsNotLeasedButHasAReceiptIsFound", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		w.raw("UPDATE messages SET receipt = '1-00000000000000000000000000000000' WHERE id = ?", id)
		w.finds(id, "receipt")
		w.is(w.ack(aRef{id, "1-00000000000000000000000000000000"}), queue.ErrLeaseLost)
		w.ok(w.ack(w.mustGet()))
	}},
	{name: "Rule33_AnUnknownStatusIsFoundAndStopsNobody", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		w.mustPut("y")
		w.raw("UPDATE messages SET status = 9 WHERE id = ?", id)
		w.finds(id, "status")
		w.equal("the others", []string{"y"}, w.drain())
		w.ok(w.delete(id))
	}},
	{name: "Rule33_WrongCountersAndOrphansAreFound", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		w.raw("UPDATE queues SET ready = ready + 1 WHERE name = 'jobs'")
		w.finds(0, "counters")
		w.raw("UPDATE queues SET ready = ready - 1 WHERE name = 'jobs'")
		w.raw("INSERT INTO payloads VALUES (?, x'00')", id+100)
		w.finds(id+100, "payload")
		w.raw("DELETE FROM payloads WHERE message_id = ?", id+100)
		w.raw("INSERT INTO deliveries VALUES (?, 1, 1, 0, 0, 'nacked', NULL, NULL)", id+100)
		w.finds(id+100, "delivery")
		w.raw("DELETE FROM deliveries WHERE message_id = ?", id+100)
	}},
}

// finds fails the test unless Check, quick and full, tells of one thing, and that.
func (w *world) finds(id int64, part string) {
	w.t.Helper()
	for _, quick := range []bool{true, false} {
		found, err := w.check(quick)
		w.ok(err)
		ok := false
		for _, f := range found {
			if f.ID == id {
				ok = true
				w.says(textError(f.Text), part)
			}
		}
		if !ok {
			w.t.Fatalf("Check doesn't find job %d: %+v", id, found)
		}
	}
}
