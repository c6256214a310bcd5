package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var statsCases = []conformanceCase{
	{name: "Rule28_AQueueNobodyUsedIsAllZeros", run: func(t *testing.T, w *world) {
		w.on("unknown").counts(queue.Stats{})
		all, err := w.queues()
		w.ok(err)
		for _, s := range all {
			if s.Queue == "unknown" || s.Queue == "jobs" {
				t.Errorf("looking made the queue %q", s.Queue)
			}
		}
	}},
	{name: "Rule28_StatsCountEveryState", run: func(t *testing.T, w *world) {
		for _, s := range slices.Backward(allStates) { // ready at last, or the next would claim it
			inState(w.on("one of each"), s)
		}
		w.on("one of each").counts(queue.Stats{Ready: 2, Delayed: 1, Processing: 1, Acked: 1, Failed: 1})
	}},
	{name: "Rule28_EveryStoreCountsTheSame", run: func(t *testing.T, w *world) {
		for i := range 5 {
			w.mustPut("x", delayed(time.Duration(i%2)*time.Hour))
			for p := range w.peers {
				w.peer(p).counts(queue.Stats{Ready: int64(i + 1), Delayed: int64((i + 1) / 2)})
			}
		}
	}},
	{name: "Rule28_TheAgeIsThatOfTheOldestDueJob", run: func(t *testing.T, w *world) {
		w.mustPut("not due", delayed(time.Hour))
		w.advance(time.Minute)
		w.counts(queue.Stats{Ready: 1, Delayed: 1})
		w.mustPut("first", priority(-1))
		w.advance(time.Second)
		w.mustPut("second", priority(5))
		w.mustPut("due soon", delayed(time.Second))
		w.advance(2 * time.Second)
		w.counts(queue.Stats{Ready: 4, Delayed: 1, OldestAge: 3 * time.Second})
		w.mustGet() // the second, by its priority
		w.mustGet() // the first promoted or put: "due soon" has a higher priority than "first"
		w.counts(queue.Stats{Ready: 2, Delayed: 1, Processing: 2, OldestAge: 3 * time.Second})
		w.mustGet()
		w.counts(queue.Stats{Ready: 1, Delayed: 1, Processing: 3})
		w.advance(time.Hour) // the leases have ended too, but nobody has looked: they aren't ready yet
		w.counts(queue.Stats{Ready: 1, Processing: 3, Expired: 3, OldestAge: time.Hour + time.Minute + 3*time.Second})
	}},
	{name: "Rule28_QueuesListsAllByName", run: func(t *testing.T, w *world) {
		w.on("b").mustPut("x")
		id := w.on("a").mustPut("x")
		w.ok(w.on("c").pause())
		w.ok(w.on("d").keepAcked(time.Hour))
		all, err := w.queues()
		w.ok(err)
		hour := time.Hour
		want := []queue.Stats{{Queue: "a", Ready: 1}, {Queue: "b", Ready: 1}, {Queue: "c", Paused: true}, {Queue: "d", KeepAcked: &hour}}
		var got []queue.Stats
		for _, s := range all {
			s.OldestAge = 0
			if s.Queue != "old" { // of the adopted file
				got = append(got, s)
			}
		}
		w.equal("queues", want, got)
		w.ok(w.on("a").delete(id))
		w.on("a").counts(queue.Stats{})
	}},
	{name: "Rule28_LookingChangesNothing", run: func(t *testing.T, w *world) {
		w.mustPut("x", deliveries(1))
		w.mustPut("y", delayed(time.Second))
		w.mustGet()
		w.advance(queue.DefaultLease)
		before := w.number("SELECT sum(id * 31 + status * 7 + delayed * 3 + updated_at) FROM messages")
		for range 3 {
			w.counts(queue.Stats{Ready: 1, Processing: 1, Expired: 1})
			w.ok(second(w.queues()))
			w.ok(second(w.list(queue.Leased, queue.ListOptions{})))
			w.ok(second(w.peek()))
			w.ok(second(w.check(true)))
		}
		w.equal("the rows", before, w.number("SELECT sum(id * 31 + status * 7 + delayed * 3 + updated_at) FROM messages"))
	}},
}
