package queue_test

import (
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var lostCases = []conformanceCase{
	{name: "Rule20_TheCauseOfALostLease_Expired", run: func(t *testing.T, w *world) {
		lose := func(q *lane) *queue.Job {
			q.mustPut("x", deliveries(2))
			j := q.mustGet()
			w.advance(queue.DefaultLease)
			return j
		}
		w.lost(w.ack(lose(&w.lane)), queue.LossExpired)
		reclaimed := w.on("reclaimed")
		j := lose(reclaimed)
		w.ok(second(reclaimed.reclaim()))
		w.lost(reclaimed.ack(j), queue.LossExpired)
		last := w.on("last")
		last.mustPut("x", deliveries(1))
		j = last.mustGet()
		w.advance(queue.DefaultLease)
		last.mustBeEmpty()
		w.lost(last.nack(j, nil), queue.LossExpired)
	}},
	{name: "Rule20_TheCauseOfALostLease_Superseded", run: func(t *testing.T, w *world) {
		w.mustPut("x")
		j := w.mustGet()
		w.ok(w.nack(j, errBoom))
		again := w.mustGet()
		w.lost(w.ack(j), queue.LossSuperseded)
		w.ok(w.ack(again))
		w.lost(w.ack(j), queue.LossSuperseded)
	}},
	{name: "Rule20_TheCauseOfALostLease_Settled", run: func(t *testing.T, w *world) {
		for _, s := range []queue.State{queue.Ready, queue.Delayed, queue.Acked, queue.Failed} {
			q := w.on(string(s))
			w.lost(q.ack(inState(q, s)), queue.LossSettled)
		}
	}},
	{name: "Rule20_TheCauseOfALostLease_Cancelled", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		w.ok(w.cancel(id))
		for _, settle := range settles {
			err := settle(&w.lane, j)
			w.lost(err, queue.LossCancelled)
			w.is(err, queue.ErrCancelled)
		}
		w.ok(w.retry(id))
		w.lost(w.ack(j), queue.LossCancelled)
	}},
	{name: "Rule20_ADeliverySettledBeforeTheCancelWasSettled", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		w.ok(w.nack(j, errBoom))
		w.ok(w.cancel(id))
		w.lost(w.ack(j), queue.LossSettled)
	}},
	{name: "Rule20_TheCauseOfALostLease_Gone", run: func(t *testing.T, w *world) {
		w.mustPut("x")
		j := w.mustGet()
		w.ok(w.ack(j))
		w.ok(second(w.purge(0, false)))
		w.lost(w.ack(j), queue.LossGone)
		w.ok(w.keepAcked(0))
		w.mustPut("x")
		j = w.mustGet()
		w.ok(w.ack(j))
		w.lost(w.ack(j), queue.LossGone)
		w.is(third(w.show(j.ID)), queue.ErrNotFound)
	}},
	{name: "Rule20_TheCauseOfALostLease_NoSuchJob", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		for _, err := range []error{w.ack(aRef{id + 1000, j.Receipt}), w.ack(aRef{0, j.Receipt}), w.ack(aRef{-1, ""}), w.on("other").ack(j)} {
			w.lost(err, queue.LossNoSuchJob)
			w.is(err, queue.ErrNotFound)
		}
		w.ok(w.ack(j))
	}},
	{name: "Rule20_TheCauseOfALostLease_AnotherJobsReceipt", run: func(t *testing.T, w *world) {
		a, b := w.mustPut("a"), w.mustPut("b")
		ja, jb := w.mustGet(), w.mustGet()
		w.lost(w.ack(aRef{a, jb.Receipt}), queue.LossForeign)
		w.lost(w.nack(aRef{b, ja.Receipt}, errBoom), queue.LossForeign)
		w.lost(w.ack(aRef{a, "2-" + jb.Receipt[2:]}), queue.LossForeign)
		w.ok(w.ack(ja))
		w.lost(w.ack(aRef{a, "garbage"}), queue.LossForeign)
		w.ok(w.nack(jb, nil))
		w.lost(w.ack(aRef{b, "garbage"}), queue.LossForeign)
	}},
	{name: "Rule20_ALostLeaseNamesQueueAndJob", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		err := w.ack(aRef{id, "x"})
		w.says(err, `queue "jobs"`, "job ", string(queue.LossForeign))
		w.lost(err, queue.LossForeign)
	}},
}

var historyCases = []conformanceCase{
	{name: "Rule23_EveryFailedDeliveryIsKept", run: func(t *testing.T, w *world) {
		id := w.mustPut("x", deliveries(9))
		var want []queue.Delivery
		entry := func(j *queue.Job, outcome, text string) {
			want = append(want, queue.Delivery{Number: j.Delivery, Attempt: j.Attempt, Start: w.now(), End: w.now().Add(time.Second), Outcome: outcome, Error: text})
		}
		next := func() *queue.Job { return w.mustGet() }

		j := next()
		entry(j, "nacked", "boom")
		w.advance(time.Second)
		w.ok(w.nack(j, errBoom))

		j = next()
		entry(j, "panic", "boom")
		w.advance(time.Second)
		w.ok(w.nack(j, errBoom, as(queue.Panicked)))

		w.ok(w.release(next())) // no entry

		j = w.options(lease(time.Second)).mustGet()
		entry(j, "lease_expired", "")
		w.advance(time.Minute) // it ended with the lease, not with the reclaim
		w.ok(second(w.reclaim()))

		j = next()
		entry(j, "failed", "boom")
		w.advance(time.Second)
		w.ok(w.fail(j, errBoom))
		w.ok(w.retry(id))

		j = next()
		entry(j, "cancelled", "")
		w.advance(time.Second)
		w.ok(w.cancel(id))

		got := w.history(id)
		for i := range got {
			if got[i].Worker == "" {
				t.Fatalf("entry %d names nobody", i)
			}
			got[i].Worker = ""
		}
		w.equal("history", want, got)
		w.ok(w.delete(id))
		w.equal("entries of a job that is gone", 0, w.number("SELECT count(*) FROM deliveries"))
	}},
	{name: "Rule23_TheLast20AreKept", run: func(t *testing.T, w *world) {
		id := w.mustPut("x", deliveries(100))
		for range 27 {
			w.ok(w.nack(w.mustGet(), errBoom))
		}
		story := w.entries(id, 20)
		w.equal("first and last", []int64{8, 27}, []int64{story[0].Number, story[19].Number})
	}},
	{name: "Rule23_AnErrorTextIsCutAtARune", run: func(t *testing.T, w *world) {
		for _, c := range []struct{ name, text, want string }{
			{"short", "x", "x"},
			{"exact", repeat("x", 8<<10), repeat("x", 8<<10)},
			{"long", repeat("x", 8<<10+1), repeat("x", 8<<10)},
			{"rune", "x" + repeat("é", 4<<10), "x" + repeat("é", 4<<10-1)},
			{"wide", repeat("日", 3000), repeat("日", 2730)},
			{"not UTF-8", "a\xffb", "a\uFFFDb"},
			{"empty", "", ""},
		} {
			q := w.on(c.name)
			id := q.mustPut("x")
			w.ok(q.nack(q.mustGet(), textError(c.text)))
			w.equal(c.name, []string{c.want, c.want}, []string{q.mustShow(id).LastError, q.entries(id, 1)[0].Error})
			w.equal("seen by the next", c.want, q.mustGet().LastError)
		}
	}},
	{name: "Rule23_AnEntryTellsWho", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		w.ok(w.peer(1).nack(w.peer(0).mustGet(), errBoom)) // who claimed it, not who settled it
		who := w.entries(id, 1)[0].Worker
		w.equal("host:pid:name", 1, w.number("SELECT ? GLOB '?*:[1-9]*:store0'", who))
	}},
	{name: "Rule23_APutWithoutFailureHasNoHistory", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		w.ok(w.ack(w.mustGet()))
		w.equal("entries", 0, len(w.history(id)))
	}},
}

type textError string

func (e textError) Error() string { return string(e) }

func repeat(s string, n int) string {
	out := make([]byte, 0, n*len(s))
	for range n {
		out = append(out, s...)
	}
	return string(out)
}
