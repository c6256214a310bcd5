package queue_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var putCases = []conformanceCase{
	{name: "Rule01_AnAckedJobIsDeliveredNoMore", run: func(t *testing.T, w *world) {
		id := w.mustPut("a")
		w.counts(queue.Stats{Ready: 1})
		j := w.mustGet()
		w.counts(queue.Stats{Processing: 1})
		w.ok(w.ack(j))
		w.counts(queue.Stats{Acked: 1})
		w.mustBeEmpty()
		w.equal("state", queue.Acked, w.mustShow(id).State)
	}},
	{name: "Rule01_EveryWayOutOfEveryStateIsThisOneOrRefused", run: everyWayOut},
	{name: "Rule02_WhatChangesNothingIsAnError", run: func(t *testing.T, w *world) {
		id := w.mustPut("a")
		j := w.mustGet()
		w.ok(w.ack(j))
		w.is(w.ack(j), queue.ErrLeaseLost)
		w.is(w.retry(id), queue.ErrNotFailed)
		w.is(w.runNow(id), queue.ErrNotDelayed)
		w.is(w.cancel(id), queue.ErrFinished)
		for _, missing := range []int64{0, -1, id + 1000, 1 << 60} {
			w.is(w.retry(missing), queue.ErrNotFound)
			w.is(w.runNow(missing), queue.ErrNotFound)
			w.is(w.cancel(missing), queue.ErrNotFound)
			w.is(w.delete(missing), queue.ErrNotFound)
			w.is(w.ack(aRef{missing, j.Receipt}), queue.ErrLeaseLost, queue.ErrNotFound)
		}
		for _, err := range []error{w.on("other").retry(id), w.on("other").runNow(id), w.on("other").cancel(id), w.on("other").delete(id)} {
			w.is(err, queue.ErrNotFound)
		}
	}},
	{name: "Rule03_ADelayedJobCountsAsReadyAndAsDelayed", run: func(t *testing.T, w *world) {
		w.mustPut("a", delayed(time.Minute))
		w.mustPut("b")
		w.counts(queue.Stats{Ready: 2, Delayed: 1})
		w.advance(time.Minute - time.Millisecond)
		w.counts(queue.Stats{Ready: 2, Delayed: 1})
		w.advance(time.Millisecond)
		w.counts(queue.Stats{Ready: 2})
		w.equal("all", []string{"a", "b"}, w.drain())
	}},
	{name: "Rule04_APutJobIsThereForEveryStoreAtOnce", run: func(t *testing.T, w *world) {
		for i := range 12 {
			id := w.peer(i).mustPut("x")
			w.equal("id", id, w.peer(i+1).mustShow(id).ID)
			j := w.peer(i + 2).mustGet()
			w.equal("id", id, j.ID)
			w.ok(w.peer(i).ack(j))
		}
		w.counts(queue.Stats{Acked: 12})
	}},
	{name: "Rule04_IdsRiseAndAreNeverGivenTwice", run: func(t *testing.T, w *world) {
		last := w.mustPut("a")
		for range 5 {
			id := w.mustPut("b")
			if id <= last {
				t.Fatalf("id %d after %d", id, last)
			}
			w.ok(w.delete(id))
			last = id
		}
	}},
	{name: "Rule11_AQueueNameHas1To255BytesOfUTF8WithoutControlCharacters", run: func(t *testing.T, w *world) {
		for _, name := range []string{"a", strings.Repeat("n", 255), strings.Repeat("é", 127), "spaces and ?#%41/'\";", "日本語", "\u2028"} {
			q := w.on(name)
			id := q.mustPut("x")
			w.equal("queue", name, q.mustShow(id).Queue)
			j := q.mustGet()
			w.equal("queue of the job", name, j.Queue)
			w.ok(q.ack(j))
		}
		for _, name := range []string{"", strings.Repeat("n", 256), strings.Repeat("é", 128), "a\nb", "a\x00", "\x7f", "a\u0085", "bad \xff utf8"} {
			_, err := w.on(name).put("x")
			w.is(err, queue.ErrInvalid)
			_, err = w.on(name).stats()
			w.is(err, queue.ErrInvalid)
		}
	}},
	{name: "Rule11_QueuesOfOneFileAreApart", run: func(t *testing.T, w *world) {
		a, b := w.on("A"), w.on("a")
		id := a.mustPut("in A", key("k"))
		b.mustBeEmpty()
		w.equal("same key elsewhere", true, b.mustPut("in a", key("k")) != id)
		_, _, err := b.show(id)
		w.is(err, queue.ErrNotFound)
		j := a.mustGet()
		w.lost(b.ack(j), queue.LossNoSuchJob)
		w.is(b.ack(j), queue.ErrNotFound)
		w.ok(a.ack(j))
		w.equal("the other's", []string{"in a"}, b.drain())
	}},
	{name: "Rule11_APayloadIsKeptByteForByte", run: func(t *testing.T, w *world) {
		random := make([]byte, 1<<20)
		src := rand.NewChaCha8([32]byte{1})
		_, _ = src.Read(random)
		payloads := []string{"", "\x00", "a\x00b", "\xff\xfe invalid", "{\"n\": 1970670598291982290, \"f\": NaN}", "<script>\x1b[31m", "é", string(random)}
		for _, n := range []int{1999, 2000, 2001, 4096, 65536} { // around where it leaves the job's row
			payloads = append(payloads, string(random[:n]))
		}
		ids := make([]int64, len(payloads))
		for i, p := range payloads {
			ids[i] = w.mustPut(p)
		}
		batch := make([]jobSpec, len(payloads))
		for i, p := range payloads {
			batch[i] = spec(p)
		}
		_, err := w.on("batch").putMany(batch...)
		w.ok(err)
		for i, p := range payloads {
			if got := w.mustShow(ids[i]).Payload; !bytes.Equal([]byte(p), got) || got == nil {
				t.Fatalf("show has %d other bytes for payload %d of %d bytes", len(got), i, len(p))
			}
			for _, q := range []*lane{&w.lane, w.on("batch")} {
				if got := q.mustGet().Payload; !bytes.Equal([]byte(p), got) || got == nil {
					t.Fatalf("get has %d other bytes for payload %d of %d bytes", len(got), i, len(p))
				}
			}
		}
	}},
	{name: "Rule11_APayloadOverTheLimitIsRefused", run: func(t *testing.T, w *world) {
		q := w.options(maxBytes(10))
		q.mustPut("0123456789")
		for _, err := range []error{second(q.put("0123456789a")), second(q.tryPut("0123456789a")), q.checkPut("0123456789a"),
			second(q.putMany(spec("a"), spec("0123456789a"))), q.tx(q.putStep("0123456789a")).Err.error} {
			w.is(err, queue.ErrPayloadTooLarge)
			w.says(err, "WithMaxPayload")
		}
		w.ok(q.checkPut("0123456789"))
		_, err := w.options(maxBytes(-1)).put("")
		w.is(err, queue.ErrInvalid)
		w.counts(queue.Stats{Ready: 1})
	}},
}

func second[T any](_ T, err error) error { return err }

// everyWayOut tries every operation on a job in every state.
func everyWayOut(t *testing.T, w *world) {
	states := []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed}
	ways := []struct {
		name string
		try  func(q *lane, j delivery) error
		to   map[queue.State]queue.State // absent: refused
	}{
		{"ack", func(q *lane, j delivery) error { return q.ack(j) }, map[queue.State]queue.State{queue.Leased: queue.Acked}},
		{"nack", func(q *lane, j delivery) error { return q.nack(j, errBoom) }, map[queue.State]queue.State{queue.Leased: queue.Ready}},
		{"nack later", func(q *lane, j delivery) error { return q.nack(j, errBoom, after(time.Second)) }, map[queue.State]queue.State{queue.Leased: queue.Delayed}},
		{"fail", func(q *lane, j delivery) error { return q.fail(j, errBoom) }, map[queue.State]queue.State{queue.Leased: queue.Failed}},
		{"release", func(q *lane, j delivery) error { return q.release(j) }, map[queue.State]queue.State{queue.Leased: queue.Ready}},
		{"extend", func(q *lane, j delivery) error { return second(q.extend(j, time.Minute)) }, map[queue.State]queue.State{queue.Leased: queue.Leased}},
		{"retry", func(q *lane, j delivery) error { return q.retry(j.Ref().ID) }, map[queue.State]queue.State{queue.Failed: queue.Ready}},
		{"cancel", func(q *lane, j delivery) error { return q.cancel(j.Ref().ID) },
			map[queue.State]queue.State{queue.Ready: queue.Failed, queue.Delayed: queue.Failed, queue.Leased: queue.Failed}},
		{"run now", func(q *lane, j delivery) error { return q.runNow(j.Ref().ID) }, map[queue.State]queue.State{queue.Delayed: queue.Ready}},
		{"delete", func(q *lane, j delivery) error { return q.delete(j.Ref().ID) },
			map[queue.State]queue.State{queue.Ready: "gone", queue.Delayed: "gone", queue.Acked: "gone", queue.Failed: "gone"}},
	}
	for _, way := range ways {
		for _, from := range states {
			q := w.on(way.name + " from " + string(from))
			j := inState(q, from)
			err := way.try(q, j)
			want, allowed := way.to[from]
			if (err == nil) != allowed {
				t.Fatalf("%s of a job that is %s: %v", way.name, from, err)
			}
			if !allowed {
				want = from
			}
			if want == "gone" {
				_, _, err := q.show(j.Ref().ID)
				w.is(err, queue.ErrNotFound)
				continue
			}
			w.equal("state after "+string(q.queue), want, q.mustShow(j.Ref().ID).State)
		}
	}
}

// inState makes a job of a state, and returns its last delivery.
func inState(q *lane, s queue.State) delivery {
	q.w.t.Helper()
	id := q.mustPut("x")
	j := q.mustGet()
	q.w.equal("job", id, j.ID)
	switch s {
	case queue.Ready:
		q.w.ok(q.nack(j, nil))
	case queue.Delayed:
		q.w.ok(q.nack(j, nil, after(time.Hour)))
	case queue.Acked:
		q.w.ok(q.ack(j))
	case queue.Failed:
		q.w.ok(q.fail(j, nil))
	}
	return j
}
