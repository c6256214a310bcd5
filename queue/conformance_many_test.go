package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// three puts and claims three jobs.
func three(q *lane) (refs []queue.Ref) {
	q.w.t.Helper()
	for i := range 3 {
		q.mustPut(fmt.Sprint(i))
	}
	for range 3 {
		refs = append(refs, q.mustGet().Ref())
	}
	return refs
}

var manyCases = []conformanceCase{
	{name: "Rule24_ABatchOfSettlesAnswersPerJob", run: func(t *testing.T, w *world) {
		for _, c := range []struct {
			op    string
			state queue.State
		}{{"ackMany", queue.Acked}, {"nackMany", queue.Ready}, {"failMany", queue.Failed}, {"releaseMany", queue.Ready}} {
			q := w.on(c.op)
			refs := three(q)
			w.ok(q.cancel(refs[1].ID))
			errs, err := q.many(c.op, append(refs, queue.Ref{ID: 1 << 40, Receipt: "x"}), nil)
			w.ok(err)
			w.equal("answers", 4, len(errs))
			w.ok(errs[0])
			w.lost(errs[1], queue.LossCancelled)
			w.ok(errs[2])
			w.lost(errs[3], queue.LossNoSuchJob)
			w.equal("states", []queue.State{c.state, queue.Failed, c.state}, q.statesOf(refs))
		}
	}},
	{name: "Rule24_ABatchKeepsEachReceiptToItsJob", run: func(t *testing.T, w *world) {
		for _, op := range []string{"ackMany", "nackMany", "failMany", "releaseMany"} {
			q := w.on(op)
			refs := three(q)
			crossed := []queue.Ref{{ID: refs[0].ID, Receipt: refs[1].Receipt}, {ID: refs[1].ID, Receipt: refs[0].Receipt}, refs[2], {ID: refs[0].ID, Receipt: ""}}
			errs, err := q.many(op, crossed, nil)
			w.ok(err)
			w.lost(errs[0], queue.LossForeign)
			w.lost(errs[1], queue.LossForeign)
			w.ok(errs[2])
			w.lost(errs[3], queue.LossForeign)
			w.equal("states", []queue.State{queue.Leased, queue.Leased}, q.statesOf(refs[:2]))
		}
	}},
	{name: "Rule24_TheSameDeliveryTwiceInABatchIsSettledOnce", run: func(t *testing.T, w *world) {
		for _, op := range []string{"ackMany", "nackMany", "failMany", "releaseMany"} {
			q := w.on(op)
			refs := three(q)
			errs, err := q.many(op, []queue.Ref{refs[0], refs[1], refs[0], refs[0]}, nil)
			w.ok(err)
			w.ok(errs[0])
			w.ok(errs[1])
			w.lost(errs[2], queue.LossSettled)
			w.lost(errs[3], queue.LossSettled)
			if op == "nackMany" {
				w.equal("history", 1, len(q.history(refs[0].ID)))
			}
			w.equal("the third", queue.Leased, q.mustShow(refs[2].ID).State)
		}
	}},
	{name: "Rule24_ABatchAnswersItsFirstRefWhateverOrderTheyComeIn", run: func(t *testing.T, w *world) {
		refs := three(&w.lane)
		mispaired := queue.Ref{ID: refs[0].ID, Receipt: refs[1].Receipt}
		errs, err := w.ackMany(mispaired, refs[0])
		w.ok(err)
		w.lost(errs[0], queue.LossForeign)
		w.ok(errs[1])
		errs, err = w.ackMany(refs[1], queue.Ref{ID: refs[1].ID, Receipt: refs[2].Receipt})
		w.ok(err)
		w.ok(errs[0])
		w.is(errs[1], queue.ErrLeaseLost)
	}},
	{name: "Rule24_AnEmptyBatchOfSettlesIsFine", run: func(t *testing.T, w *world) {
		for _, op := range []string{"ackMany", "nackMany", "failMany", "releaseMany"} {
			errs, err := w.many(op, nil, errBoom)
			w.ok(err)
			w.equal("answers", 0, len(errs))
		}
		_, errs, err := w.heartbeat(time.Second)
		w.ok(err)
		w.equal("answers", 0, len(errs))
	}},
	{name: "Rule24_ABatchPassesOnTextDelayAndReason", run: func(t *testing.T, w *world) {
		nacked, failed, released := w.on("nacked"), w.on("failed"), w.on("released")
		refs := three(nacked)
		w.ok(firstOf(nacked.many("nackMany", refs, errBoom, after(time.Hour))))
		nacked.counts(queue.Stats{Ready: 3, Delayed: 3})
		w.equal("text", "boom", nacked.mustShow(refs[2].ID).LastError)
		w.equal("history", "nacked", nacked.entries(refs[2].ID, 1)[0].Outcome)
		refs = three(failed)
		w.ok(firstOf(failed.many("failMany", refs, errBoom, as(queue.InvalidPayload))))
		w.equal("reason", queue.InvalidPayload, failed.mustShow(refs[1].ID).Reason)
		refs = three(released)
		w.ok(firstOf(released.many("releaseMany", refs, nil, after(time.Hour))))
		released.counts(queue.Stats{Ready: 3, Delayed: 3})
	}},
	{name: "Rule22_AHeartbeatAnswersPerJob", run: func(t *testing.T, w *world) {
		refs := three(&w.lane)
		w.ok(w.ack(aRef(refs[0])))
		w.advance(time.Second)
		crossed := queue.Ref{ID: refs[1].ID, Receipt: refs[2].Receipt}
		until, errs, err := w.heartbeat(time.Hour, refs[0], refs[1], refs[2], queue.Ref{ID: 1 << 40})
		w.ok(err)
		end := w.now().Add(time.Hour)
		w.lost(errs[0], queue.LossSettled)
		w.equal("ends", []time.Time{end, end}, until[1:3])
		w.lost(errs[3], queue.LossNoSuchJob)
		_, errs, err = w.heartbeat(2*time.Hour, crossed)
		w.ok(err)
		w.lost(errs[0], queue.LossForeign)
		w.equal("untouched", end, w.mustShow(refs[1].ID).LeaseUntil)
		until, errs, err = w.heartbeat(2*time.Hour, crossed, refs[2], crossed)
		w.ok(err)
		w.lost(errs[0], queue.LossForeign)
		w.ok(errs[1])
		w.lost(errs[2], queue.LossForeign)
		w.equal("renewed", w.now().Add(2*time.Hour), until[1])
	}},
	{name: "Rule22_AHeartbeatWithARightAndAWrongReceiptAnswersEach", run: func(t *testing.T, w *world) {
		refs := three(&w.lane)
		wrong := queue.Ref{ID: refs[0].ID, Receipt: refs[1].Receipt}
		_, errs, err := w.heartbeat(time.Hour, wrong, refs[0])
		w.ok(err)
		w.lost(errs[0], queue.LossForeign)
		w.ok(errs[1])
	}},
}

func (l *lane) statesOf(refs []queue.Ref) (states []queue.State) {
	l.w.t.Helper()
	for _, r := range refs {
		states = append(states, l.mustShow(r.ID).State)
	}
	return states
}
