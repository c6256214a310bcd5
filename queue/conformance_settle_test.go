package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var settleCases = []conformanceCase{
	{name: "Rule20_AnEndedLeaseSettlesNothing", run: func(t *testing.T, w *world) {
		for name, settle := range settles {
			q := w.on(name)
			id := q.mustPut("x")
			j := q.mustGet()
			w.advance(queue.DefaultLease - time.Millisecond)
			w.ok(second(q.extend(j, time.Second)))
			w.advance(time.Second)
			before := q.mustShow(id) // lease_until == now is ended
			w.lost(settle(q, j), queue.LossExpired)
			w.equal("the job after "+name, before, q.mustShow(id))
		}
	}},
	{name: "Rule20_AStrangersReceiptSettlesNothing", run: func(t *testing.T, w *world) {
		for name, settle := range settles {
			q := w.on(name)
			first, other := q.mustPut("x"), q.mustPut("y")
			j, otherJob := q.mustGet(), q.mustGet()
			before := q.mustShow(first)
			for _, receipt := range []string{"", "x", "'", "1-" + strings.Repeat("0", 32), otherJob.Receipt, j.Receipt + " ", strings.ToUpper(j.Receipt), "2" + j.Receipt[1:]} {
				w.lost(settle(q, aRef{first, receipt}), queue.LossForeign)
			}
			w.equal("the job", before, q.mustShow(first))
			w.equal("the other", queue.Leased, q.mustShow(other).State)
			w.ok(settle(q, j)) // its owner still can
		}
	}},
	{name: "Rule20_AnOldOwnerLeavesTheNewOneAlone", run: func(t *testing.T, w *world) {
		for name, settle := range settles {
			q := w.on(name)
			id := q.mustPut("x")
			a := q.mustGet()
			w.advance(queue.DefaultLease)
			b := q.mustGet()
			before := q.mustShow(id)
			w.lost(settle(q, a), queue.LossSuperseded)
			w.equal("the job", before, q.mustShow(id))
			w.equal("no entry but the expired one", 1, len(q.history(id)))
			w.ok(settle(q, b))
		}
	}},
	{name: "Rule21_NackGivesTheJobBackAtOnceOrLater", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		w.ok(w.nack(w.mustGet(), errBoom))
		w.counts(queue.Stats{Ready: 1})
		j := w.mustGet()
		w.equal("last error", "boom", j.LastError)
		w.ok(w.nack(j, nil, after(time.Minute)))
		w.counts(queue.Stats{Ready: 1, Delayed: 1})
		rec := w.mustShow(id)
		w.equal("kept", []any{"boom", w.now().Add(time.Minute), queue.Delayed}, []any{rec.LastError, rec.AvailableAt, rec.State})
		w.advance(time.Minute - time.Millisecond)
		w.mustBeEmpty()
		w.advance(time.Millisecond)
		w.equal("a missing text keeps the earlier one", "boom", w.mustGet().LastError)
	}},
	{name: "Rule21_TheLastNackFailsTheJobWhateverItsDelay", run: func(t *testing.T, w *world) {
		id := w.mustPut("x", deliveries(1))
		w.ok(w.nack(w.mustGet(), errBoom, after(time.Hour)))
		rec := w.mustShow(id)
		w.equal("the end", []any{queue.Failed, queue.RetriesExhausted, "boom"}, []any{rec.State, rec.Reason, rec.LastError})
		w.counts(queue.Stats{Failed: 1})
	}},
	{name: "Rule21_BadArgumentsLeaveTheLeaseUsable", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		before := w.mustShow(id)
		for _, err := range []error{
			w.nack(j, nil, after(-1)), w.nack(j, nil, after(century+1)), w.nack(j, nil, as(queue.Permanent)), w.nack(j, nil, as("odd")),
			w.fail(j, nil, after(-1)), w.fail(j, nil, as(queue.Cancelled)), w.fail(j, nil, as(queue.LeaseExpired)), w.fail(j, nil, as("")),
			w.release(j, after(-1)), w.release(j, as(queue.Panicked)),
			second(w.extend(j, 0)), second(w.extend(j, -time.Second)), second(w.extend(j, century+1)),
			second(w.many("nackMany", []queue.Ref{j.Ref()}, nil, after(-1))), second(w.many("failMany", []queue.Ref{j.Ref()}, nil, as("odd"))),
			second(w.many("releaseMany", []queue.Ref{j.Ref()}, nil, after(-1))), third(w.heartbeat(0, j.Ref())), third(w.heartbeat(century+1, j.Ref())),
			w.tx(w.settleStep("nack", j, nil, after(-1))).Err.error, w.tx(w.settleStep("fail", j, nil, as("odd"))).Err.error,
			w.tx(w.settleStep("release", j, nil, after(-1))).Err.error,
		} {
			w.is(err, queue.ErrInvalid)
		}
		w.equal("the job", before, w.mustShow(id))
		w.ok(w.ack(j))
	}},
	{name: "Rule22_ExtendSetsTheEndFromNow", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		updated := w.mustShow(id).UpdatedAt
		w.advance(time.Second)
		for _, d := range []time.Duration{time.Hour, time.Second, century, time.Minute} { // longer and shorter
			until, err := w.extend(j, d)
			w.ok(err)
			w.equal("answer", w.now().Add(d), until)
			w.equal("stored", until, w.mustShow(id).LeaseUntil)
		}
		w.equal("the last transition", updated, w.mustShow(id).UpdatedAt)
		w.advance(time.Minute)
		w.lost(second(w.extend(j, time.Hour)), queue.LossExpired)
		w.equal("delivered again", 2, w.mustGet().Attempt)
	}},
	{name: "Rule22_AHeartbeatNeverShortensAndNeverRevives", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		updated := w.mustShow(id).UpdatedAt
		w.advance(10 * time.Second)
		until, errs, err := w.heartbeat(time.Second, j.Ref())
		w.ok(err)
		w.equal("not shorter", []any{start.Add(time.Minute), error(nil)}, []any{until[0], errs[0]})
		until, _, err = w.heartbeat(time.Minute, j.Ref())
		w.ok(err)
		w.equal("longer", w.now().Add(time.Minute), until[0])
		rec := w.mustShow(id)
		w.equal("stored", []time.Time{until[0], updated}, []time.Time{rec.LeaseUntil, rec.UpdatedAt})
		w.advance(time.Minute)
		_, errs, err = w.heartbeat(time.Hour, j.Ref())
		w.ok(err)
		w.lost(errs[0], queue.LossExpired)
		w.counts(queue.Stats{Processing: 1, Expired: 1})
	}},
	{name: "Rule24_AReleaseUsesNoAttemptAlsoOnTheLastDelivery", run: func(t *testing.T, w *world) {
		id := w.mustPut("x", deliveries(1))
		for n := int64(1); n <= 3; n++ {
			j := w.mustGet()
			w.equal("attempt and delivery", []any{1, n}, []any{j.Attempt, j.Delivery})
			w.ok(w.release(j, after(time.Duration(n-1)*time.Second)))
			w.counts(queue.Stats{Ready: 1, Delayed: min(n-1, 1)})
			w.advance(time.Duration(n-1) * time.Second)
		}
		rec, story, err := w.show(id)
		w.ok(err)
		w.equal("attempts, deliveries, history", []any{0, int64(3), 0}, []any{rec.Attempts, rec.Delivery, len(story)})
		w.ok(w.ack(w.mustGet()))
	}},
	{name: "Rule20_ASettledDeliveryCannotBeSettledAgain", run: func(t *testing.T, w *world) {
		for first, settle := range settles {
			for again, repeat := range settles {
				if first == "extend" {
					continue
				}
				q := w.on(first + " then " + again)
				q.mustPut("x")
				j := q.mustGet()
				w.ok(settle(q, j))
				w.lost(repeat(q, j), queue.LossSettled)
			}
		}
	}},
	{name: "Rule32_HeldTellsWhichDeliveriesStillHoldTheirJob", run: func(t *testing.T, w *world) {
		var refs []queue.Ref
		for i := range 4 {
			w.mustPut(fmt.Sprint(i))
			refs = append(refs, w.mustGet().Ref())
		}
		w.ok(w.ack(aRef(refs[1])))
		w.ok(w.cancel(refs[2].ID))
		held, err := w.held(append(refs, queue.Ref{ID: refs[0].ID, Receipt: refs[3].Receipt}, queue.Ref{ID: 1 << 50})...)
		w.ok(err)
		w.equal("held", []bool{true, false, false, true, false, false}, held)
	}},
}

// settles are all calls that need a lease.
var settles = map[string]func(q *lane, d delivery) error{
	"ack":     func(q *lane, d delivery) error { return q.ack(d) },
	"nack":    func(q *lane, d delivery) error { return q.nack(d, errBoom) },
	"fail":    func(q *lane, d delivery) error { return q.fail(d, errBoom) },
	"release": func(q *lane, d delivery) error { return q.release(d) },
	"extend":  func(q *lane, d delivery) error { return second(q.extend(d, time.Minute)) },
	"ackMany": func(q *lane, d delivery) error { return firstOf(q.ackMany(d.Ref())) },
	"nackMany": func(q *lane, d delivery) error {
		return firstOf(q.many("nackMany", []queue.Ref{d.Ref()}, errBoom))
	},
	"failMany":    func(q *lane, d delivery) error { return firstOf(q.many("failMany", []queue.Ref{d.Ref()}, errBoom)) },
	"releaseMany": func(q *lane, d delivery) error { return firstOf(q.many("releaseMany", []queue.Ref{d.Ref()}, nil)) },
	"ackTx":       func(q *lane, d delivery) error { return q.tx(q.settleStep("ack", d, nil)).Err.error },
	"nackForeign": func(q *lane, d delivery) error { return q.foreignTx(q.settleStep("nack", d, errBoom)).Err.error },
	"ackWith":     func(q *lane, d delivery) error { return q.ackWith(d) },
}

func firstOf(errs []error, err error) error {
	if err != nil || len(errs) == 0 {
		return err
	}
	return errs[0]
}

func third[A, B any](_ A, _ B, err error) error { return err }
