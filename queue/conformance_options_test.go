package queue_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const century = 100 * 365 * 24 * time.Hour

var optionCases = []conformanceCase{
	{name: "Rule06_AJobHasOneDeliveryMoreThanRetries", run: func(t *testing.T, w *world) {
		zero := w.options(retries(0))
		for _, c := range []struct {
			want int
			put  func() int64
		}{
			{4, func() int64 { return w.mustPut("default") }},
			{1, func() int64 { return zero.mustPut("the queue's") }},
			{3, func() int64 { return zero.mustPut("its own", deliveries(3)) }},
			{1, func() int64 { return w.mustPut("its own", deliveries(1)) }},
			{3, func() int64 { return w.mustStep(w.tx(w.putStep("in a transaction", deliveries(3))), 0).ID }},
			{2, func() int64 { res, err := w.putMany(spec("in a batch", deliveries(2))); w.ok(err); return res[0].ID }},
		} {
			id := c.put()
			for n := 1; n <= c.want; n++ {
				j := w.mustGet()
				w.equal("attempt, most, delivery", []any{id, n, c.want, int64(n)}, []any{j.ID, j.Attempt, j.MaxAttempts, j.Delivery})
				w.ok(w.nack(j, errBoom))
			}
			rec := w.mustShow(id)
			w.equal("the end", []any{queue.Failed, queue.RetriesExhausted, c.want}, []any{rec.State, rec.Reason, rec.Attempts})
		}
		w.mustBeEmpty()
	}},
	{name: "Rule06_NegativeRetriesAreRefused", run: func(t *testing.T, w *world) {
		for _, n := range []int{-1, math.MinInt32, 1<<30 + 1} {
			w.is(second(w.put("x", deliveries(n+1))), queue.ErrInvalid)
			w.is(second(w.options(retries(n)).put("x")), queue.ErrInvalid)
		}
		w.mustPut("x", deliveries(1<<30+1))
	}},
	{name: "Rule07_ADelayHoldsAJobUntilItsInstant", run: func(t *testing.T, w *world) {
		w.mustPut("late", delayed(time.Minute), priority(9))
		w.mustPut("at", due(start.Add(30*time.Second)))
		w.mustPut("now", delayed(0))
		w.mustPut("past", due(start.Add(-time.Hour)))
		w.mustPut("long past", due(time.Time{}))
		w.equal("at first", []string{"now", "past", "long past"}, w.drain())
		w.advance(30*time.Second - time.Millisecond)
		w.mustBeEmpty()
		w.advance(time.Millisecond)
		w.equal("at its instant", []string{"at"}, w.drain())
		w.advance(30 * time.Second)
		w.equal("at the end", []string{"late"}, w.drain())
	}},
	{name: "Rule07_ADelayIsNeverShorterThanAsked", run: func(t *testing.T, w *world) {
		w.mustPut("x", delayed(time.Microsecond))
		w.mustBeEmpty()
		w.advance(time.Millisecond)
		w.mustGet()
	}},
	{name: "Rule07_AJobIsNeverDueBeforeItsInstant", run: func(t *testing.T, w *world) {
		w.mustPut("x", due(start.Add(time.Microsecond)))
		w.mustBeEmpty()
		w.advance(time.Millisecond)
		w.mustGet()
	}},
	{name: "Rule07_DelaysAreFrom0To100Years", run: func(t *testing.T, w *world) {
		for _, o := range []jobOpt{delayed(-time.Nanosecond), delayed(century + 1), due(start.Add(century + time.Millisecond)), due(start.AddDate(500, 0, 0))} {
			w.is(second(w.put("x", o)), queue.ErrInvalid)
			w.is(second(w.putMany(spec("a"), spec("x", o))), queue.ErrInvalid)
			w.is(w.tx(w.putStep("x", o)).Err.error, queue.ErrInvalid)
		}
		w.mustPut("a", delayed(century))
		last := w.mustPut("b", due(start.Add(century)))
		w.counts(queue.Stats{Ready: 2, Delayed: 2})
		w.equal("due", start.Add(century), w.mustShow(last).AvailableAt)
	}},
	{name: "Rule07_PrioritiesAreAnyInt16", run: func(t *testing.T, w *world) {
		for _, p := range []int16{0, math.MinInt16, math.MaxInt16, -1, 1} {
			id := w.mustPut(fmt.Sprint(p), priority(p))
			w.equal("priority", p, w.mustShow(id).Priority)
		}
		for _, want := range []int16{math.MaxInt16, 1, 0, -1, math.MinInt16} {
			w.equal("priority", want, w.mustGet().Priority)
		}
	}},
	{name: "Rule07_HeadersComeAlong", run: func(t *testing.T, w *world) {
		want := map[string]string{"trace-id": "4bf92f", "empty": "", "日本": "\"quoted\" \n \x00 <b>", " ": "é"}
		opts := make([]jobOpt, 0, len(want))
		for k, v := range want {
			opts = append(opts, header(k, v))
		}
		id := w.mustPut("x", opts...)
		w.mustPut("none")
		w.mustPut("twice", header("k", "1"), header("k", "2"))
		w.equal("shown", want, w.mustShow(id).Headers)
		w.equal("got", want, w.mustGet().Headers)
		w.equal("none", map[string]string(nil), w.mustGet().Headers)
		w.equal("the last of a name", map[string]string{"k": "2"}, w.mustGet().Headers)
	}},
	{name: "Rule07_HeadersAreAtMost64And16KiBTogether", run: func(t *testing.T, w *world) {
		var most []jobOpt
		for i := range 64 {
			most = append(most, header(fmt.Sprintf("%02d", i), "v"))
		}
		w.mustPut("64", most...)
		w.is(second(w.put("65", append(most, header("one", "more"))...)), queue.ErrInvalid)
		w.mustPut("16 KiB", header("k", strings.Repeat("v", 16<<10-1)))
		w.is(second(w.put("more", header("k", strings.Repeat("v", 16<<10)))), queue.ErrInvalid)
		w.is(second(w.put("more", header(strings.Repeat("k", 16<<10), "v"))), queue.ErrInvalid)
		for _, bad := range []jobOpt{header("", "v"), header("\xff", "v"), header("k", "\xff")} {
			w.is(second(w.put("bad", bad)), queue.ErrInvalid)
			w.is(w.checkPut("bad", bad), queue.ErrInvalid)
		}
		w.counts(queue.Stats{Ready: 2})
	}},
	{name: "Rule18_AJobTellsAllAboutItsDelivery", run: func(t *testing.T, w *world) {
		id := w.mustPut("p", key("k"), priority(-3), header("h", "v"), deliveries(7))
		w.advance(time.Minute)
		first := w.mustGet()
		want := &queue.Job{ID: id, Queue: "jobs", JobID: "k", Payload: []byte("p"), Headers: map[string]string{"h": "v"}, Priority: -3,
			Attempt: 1, MaxAttempts: 7, Delivery: 1, Receipt: first.Receipt, EnqueuedAt: start, LeaseUntil: start.Add(2 * time.Minute)}
		w.equal("the first delivery", want, first)
		w.ok(w.nack(first, errBoom))
		again := w.mustGet()
		want.Attempt, want.Delivery, want.LastError, want.Receipt = 2, 2, "boom", again.Receipt
		w.equal("the second delivery", want, again)
		w.equal("another receipt", true, first.Receipt != again.Receipt)
	}},
	{name: "Rule29_ShowTellsAllAboutAJob", run: func(t *testing.T, w *world) {
		id := w.mustPut("p", key("k"), whilePending(), priority(5), header("h", "v"), deliveries(2), delayed(time.Second))
		want := &queue.Record{ID: id, Queue: "jobs", State: queue.Delayed, JobID: "k", Pending: true, Payload: []byte("p"), Headers: map[string]string{"h": "v"},
			Priority: 5, MaxAttempts: 2, AvailableAt: start.Add(time.Second), CreatedAt: start, UpdatedAt: start}
		w.equal("delayed", want, w.mustShow(id))
		w.advance(time.Minute)
		j := w.peer(0).mustGet()
		leased := *want
		leased.State, leased.Attempts, leased.Delivery, leased.Receipt = queue.Leased, 1, 1, j.Receipt
		leased.LeaseUntil, leased.ClaimedAt, leased.UpdatedAt = w.now().Add(time.Minute), w.now(), w.now()
		got := w.mustShow(id)
		leased.ClaimedBy = got.ClaimedBy
		w.equal("leased", &leased, got)
		w.equal("who", true, strings.HasSuffix(got.ClaimedBy, ":store0"))
		w.advance(time.Second)
		w.ok(w.fail(j, errBoom))
		leased.State, leased.Receipt, leased.LeaseUntil, leased.UpdatedAt = queue.Failed, "", time.Time{}, w.now()
		leased.Reason, leased.LastError = queue.Permanent, "boom"
		w.equal("failed", &leased, w.mustShow(id))
	}},
}
