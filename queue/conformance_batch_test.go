package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var batchCases = []conformanceCase{
	{name: "Rule08_ABatchHasIdsInItsOwnOrder", run: func(t *testing.T, w *world) {
		jobs := []jobSpec{spec("a"), spec("b", key("k1")), spec(strings.Repeat("c", 5000)), spec("d", priority(0), header("h", "v")), spec("e", delayed(time.Hour)),
			spec("f", key("k2"), whilePending()), spec("g", deliveries(9)), spec(""), spec("h", key("k3"))}
		res, err := w.putMany(jobs...)
		w.ok(err)
		for i, r := range res {
			if r.Duplicate || i > 0 && r.ID != res[i-1].ID+1 {
				t.Fatalf("job %d of the batch got %+v after %+v", i, r, res[max(i, 1)-1])
			}
			w.equal("payload", string(jobs[i].Payload), string(w.mustShow(r.ID).Payload))
		}
		w.equal("order", []string{"a", "b", strings.Repeat("c", 5000), "d", "f", "g", "", "h"}, w.drain())
	}},
	{name: "Rule08_DuplicatesInABatchShareAnId", run: func(t *testing.T, w *world) {
		held := w.mustPut("held", key("held"))
		res, err := w.putMany(spec("a", key("k")), spec("b"), spec("c", key("k")), spec("d", key("held")), spec("e", key("other"), whilePending()),
			spec("f", key("other")), spec("g", key("k"), priority(1)), spec("h"))
		w.ok(err)
		first := res[0].ID
		dup := func(id int64) queue.PutResult { return queue.PutResult{ID: id, Duplicate: true} }
		w.equal("answers", []queue.PutResult{{ID: first}, {ID: res[1].ID}, dup(first), dup(held), {ID: res[4].ID}, dup(res[4].ID), dup(first), {ID: res[7].ID}}, res)
		w.equal("what is stored", []string{"held", "a", "b", "e", "h"}, w.drain())
	}},
	{name: "Rule08_ABatchIsStoredWholeOrNotAtAll", run: func(t *testing.T, w *world) {
		for _, bad := range []jobOpt{delayed(-1), header("", ""), key(""), deliveries(-5)} {
			_, err := w.putMany(spec("a"), spec("b"), spec("c", bad), spec("d"))
			w.is(err, queue.ErrInvalid)
			w.says(err, "job 2 of 4")
		}
		w.is(second(w.options(maxBytes(1)).putMany(spec("a"), spec("bb"))), queue.ErrPayloadTooLarge)
		w.is(second(w.options(atMost(2)).putMany(spec("a"), spec("b", header("h", "v")), spec("c"))), queue.ErrFull)
		w.counts(queue.Stats{})
		w.mustBeEmpty()
	}},
	{name: "Rule08_AnEmptyBatchIsFine", run: func(t *testing.T, w *world) {
		for _, put := range []func(...jobSpec) ([]queue.PutResult, error){w.putMany, w.tryPutMany} {
			res, err := put()
			w.ok(err)
			w.equal("answers", 0, len(res))
		}
		w.ok(w.tx(w.putManyStep()).Err.error)
		w.counts(queue.Stats{})
	}},
	{name: "Rule08_ALargeBatchKeepsItsOrder", run: func(t *testing.T, w *world) {
		const n = 2500 // more than one statement stores
		jobs := make([]jobSpec, n)
		for i := range jobs {
			jobs[i] = spec(fmt.Sprint(i))
			if i%7 == 0 {
				jobs[i] = spec(fmt.Sprint(i), key(fmt.Sprint("k", i%700)))
			}
		}
		res, err := w.putMany(jobs...)
		w.ok(err)
		var want []string
		for i, r := range res {
			if i%7 == 0 && i >= 700 {
				w.equal("a duplicate", queue.PutResult{ID: res[i%700].ID, Duplicate: true}, r)
				continue
			}
			want = append(want, fmt.Sprint(i))
		}
		var got []string
		for len(got) < len(want) {
			claimed, err := w.tryGetMany(1000)
			w.ok(err)
			for _, j := range claimed {
				got = append(got, string(j.Payload))
			}
		}
		w.equal("order", want, got)
	}},
	{name: "Rule08_EqualOptionsAndMixedOnesMeanTheSame", run: func(t *testing.T, w *world) {
		_, err := w.putMany(spec("low", priority(-1)), spec("x"), spec("high", priority(1)), spec("later", due(start.Add(time.Minute))), spec("y", deliveries(1)))
		w.ok(err)
		w.counts(queue.Stats{Ready: 5, Delayed: 1})
		w.equal("order", []string{"high", "x", "y", "low"}, w.drain())
		w.advance(time.Minute)
		w.equal("then", []string{"later"}, w.drain())
	}},
}
