package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

func TestCase08_AnOldOwnerCannotTouchTheNewOnes(t *testing.T) {
	w := newWorld(t, shapes[2], storeOpts{RealClock: true})
	for name, settle := range settles {
		for _, again := range []int{0, 1} { // by the same process, and by another
			q := w.on(fmt.Sprint(name, again))
			id := q.mustPut("x")
			a := q.options(lease(30 * time.Millisecond)).peer(0).mustGet()
			b, err := q.peer(again).comes()
			w.ok(err)
			w.equal("job", id, b.ID)
			before := q.mustShow(id)
			w.lost(settle(q.peer(0), a), queue.LossSuperseded)
			w.equal("the new owner's job", before, q.mustShow(id))
			w.ok(settle(q.peer(again), b))
		}
	}
	w.verify()
}

func TestCase10_AJobThatKillsItsProcessEndsAfterItsDeliveries(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	q := s.Default()
	res, err := q.Put(t.Context(), []byte("kills"), queue.MaxRetries(2))
	ok(t, err)
	for n := 1; n <= 3; n++ {
		p := startProcess(t)
		p.tell("die", dir)
		same(t, "start", fmt.Sprint("attempt ", n), p.hears())
		same(t, "then", "", p.hears())
	}
	ended := queue.Reclaimed{}
	deadline := time.Now().Add(patience)
	for ended.Failed == 0 && time.Now().Before(deadline) {
		ended, err = q.ReclaimExpired(t.Context())
		ok(t, err)
	}
	rec, story, err := q.Show(t.Context(), res.ID)
	ok(t, err)
	same(t, "the end", []any{queue.Failed, queue.LeaseExpired, 3, 3}, []any{rec.State, rec.Reason, rec.Attempts, len(story)})
	who := map[string]bool{}
	for _, d := range story {
		who[d.Worker] = true
	}
	same(t, "processes in the history", 3, len(who))
}

func TestCase10_WithOneDeliveryItIsShownAsExpiredAndThenFails(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"claim":   func(w *world) { w.mustBeEmpty() },
		"reclaim": func(w *world) { w.ok(second(w.reclaim())) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shapes[1], storeOpts{})
			id := w.mustPut("x", deliveries(1))
			w.mustGet()
			w.advance(queue.DefaultLease)
			for range 3 { // looking changes nothing
				w.counts(queue.Stats{Processing: 1, Expired: 1})
				w.equal("listed", []int64{id}, w.ids(queue.Leased))
			}
			end(w)
			w.counts(queue.Stats{Failed: 1})
			w.verify()
		})
	}
}

func TestCase14_OneKeyIsOneJobWhoeverPutsIt(t *testing.T) {
	w := newWorld(t, shapes[2], storeOpts{})
	id := w.mustPut("first", key("k"))
	j := w.mustGet()
	res, err := w.put("while it runs", key("k"))
	w.ok(err)
	w.equal("while it runs", queue.PutResult{ID: id, Duplicate: true}, res)
	w.ok(w.ack(j))
	res, err = w.put("after it", key("k"))
	w.ok(err)
	w.equal("after it", queue.PutResult{ID: id, Duplicate: true}, res)

	race := w.on("race")
	var putters []*pending[[]int64]
	for i := range 2 {
		putters = append(putters, inBackground(func() (ids []int64, err error) {
			for range sized(60, 500) {
				res, err := race.peer(i).put("x", key("k"))
				if err != nil {
					return ids, err
				}
				ids = append(ids, res.ID)
			}
			return ids, nil
		}))
	}
	var ids []int64
	for _, p := range putters {
		got, err := p.await(t)
		w.ok(err)
		ids = append(ids, got...)
	}
	w.equal("one id", 1, len(slices.Compact(ids)))
	race.counts(queue.Stats{Ready: 1})
	w.verify()
}

func TestCase17_AClockThatStepsBackStallsNobody(t *testing.T) {
	w := newWorld(t, shapes[2], storeOpts{})
	w.mustPut("delayed", delayed(30*time.Minute), priority(1))
	w.mustPut("immediate")
	held := w.mustGet()
	get := inBackground(w.peer(1).comes)
	w.untilWaiting(1)
	w.advance(-time.Hour)
	until, errs, err := w.heartbeat(queue.DefaultLease, held.Ref())
	w.ok(err)
	w.equal("the heartbeat comes through", []any{error(nil), start.Add(queue.DefaultLease)}, []any{errs[0], until[0]})
	w.mustPut("after the step")
	j, err := get.await(t)
	w.ok(err)
	w.equal("payload", "after the step", string(j.Payload))
	get = inBackground(w.peer(1).comes)
	w.untilWaiting(1)
	w.advance(90 * time.Minute)
	j, err = get.await(t)
	w.ok(err)
	w.equal("the delayed one, once", []any{"delayed", 1}, []any{string(j.Payload), j.Attempt})
	w.verify()
}

func TestCase22_InMemoryIsRefused(t *testing.T) {
	_, err := queue.Open(":memory:")
	matches(t, err, queue.ErrInMemory)
	if !strings.Contains(err.Error(), "queuetest") {
		t.Errorf("the error doesn't name the test helper: %v", err)
	}
}
