package queue_test

import (
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var purgeCases = []conformanceCase{
	{name: "Rule30_PurgeRemovesFinishedJobsByAge", run: func(t *testing.T, w *world) {
		for range 3 {
			inState(&w.lane, queue.Acked)
			inState(&w.lane, queue.Failed)
			w.advance(time.Minute)
		}
		inState(&w.lane, queue.Delayed)
		inState(&w.lane, queue.Leased)
		inState(&w.lane, queue.Ready) // last: it would be claimed
		purge := func(age time.Duration, failed bool, want int) {
			t.Helper()
			n, err := w.purge(age, failed)
			w.ok(err)
			w.equal("purged", want, n)
		}
		purge(3*time.Minute+time.Millisecond, true, 0)
		purge(3*time.Minute, false, 1)
		purge(2*time.Minute, true, 3)
		w.counts(queue.Stats{Ready: 2, Delayed: 1, Processing: 1, Acked: 1, Failed: 1})
		purge(0, false, 1)
		purge(0, true, 1)
		purge(0, true, 0)
		w.counts(queue.Stats{Ready: 2, Delayed: 1, Processing: 1})
		w.is(second(w.purge(-1, true)), queue.ErrInvalid)
		w.equal("history left", 2, w.number("SELECT count(*) FROM deliveries")) // of the two that were nacked
	}},
	{name: "Rule30_PurgeGoesByTheTerminalTransitionNotByThePut", run: func(t *testing.T, w *world) {
		w.mustPut("old")
		w.advance(time.Hour)
		w.ok(w.ack(w.mustGet()))
		n, err := w.purge(time.Second, true)
		w.ok(err)
		w.equal("purged", 0, n)
	}},
	{name: "Rule30_PurgeOfAnyAgeTakesAllAlsoAfterTheClockStepsBack", run: func(t *testing.T, w *world) {
		inState(&w.lane, queue.Acked)
		inState(&w.lane, queue.Failed)
		w.advance(-time.Hour)
		n, err := w.deleteMany(queue.DeleteFilter{State: queue.Failed})
		w.ok(err)
		w.equal("deleted", 1, n)
		inState(&w.lane, queue.Failed)
		n, err = w.purge(0, true)
		w.ok(err)
		w.equal("purged", 2, n)
	}},
	{name: "Rule30_PurgeGoesInSteps", run: func(t *testing.T, w *world) {
		const n = 2300
		jobs := make([]jobSpec, n)
		for i := range jobs {
			jobs[i] = spec(repeat("x", i%7*500))
		}
		w.ok(second(w.putMany(jobs...)))
		w.raw("UPDATE messages SET status = 2, updated_at = ? WHERE queue = 'jobs'", w.now().UnixMilli())
		var steps []int
		s := openLocalStore(w)
		q, err := s.Queue("jobs")
		w.ok(err)
		removed, err := q.Purge(t.Context(), queue.PurgeOptions{Progress: func(sum int) { steps = append(steps, sum) }})
		w.ok(err)
		w.equal("purged", n, removed)
		for i, sum := range append([]int{0}, steps...)[:len(steps)] {
			if step := steps[i] - sum; step < 1 || step > 1000 {
				t.Errorf("a step of %d", step)
			}
		}
		w.equal("progress at the end", n, steps[len(steps)-1])
		w.equal("payloads left", 0, w.number("SELECT count(*) FROM payloads"))
	}},
	{name: "Rule30_KeepAckedForZeroDeletesAtTheAck", run: func(t *testing.T, w *world) {
		w.ok(w.keepAcked(0))
		zero := time.Duration(0)
		w.counts(queue.Stats{KeepAcked: &zero})
		for _, ack := range []func(j *queue.Job) error{
			func(j *queue.Job) error { return w.ack(j) },
			func(j *queue.Job) error { return firstOf(w.ackMany(j.Ref())) },
			func(j *queue.Job) error { return w.tx(w.settleStep("ack", j, nil)).Err.error },
			func(j *queue.Job) error { return w.foreignTx(w.settleStep("ack", j, nil)).Err.error },
		} {
			w.mustPut(repeat("x", 3000), key("k")) // its key is free each time
			j := w.mustGet()
			w.ok(ack(j))
			w.lost(ack(j), queue.LossGone)
			w.counts(queue.Stats{KeepAcked: &zero})
			w.is(third(w.show(j.ID)), queue.ErrNotFound)
		}
		w.mustPut("dead", key("k"))
		w.ok(w.fail(w.mustGet(), errBoom)) // the dead letters stay
		w.counts(queue.Stats{Failed: 1, KeepAcked: &zero})
		w.equal("payloads left", 0, w.number("SELECT count(*) FROM payloads"))
		w.ok(w.keepForever())
		w.mustPut("kept")
		w.ok(w.ack(w.mustGet()))
		w.counts(queue.Stats{Failed: 1, Acked: 1})
	}},
	{name: "Rule30_RetentionRemovesWhatIsOlder", run: func(t *testing.T, w *world) {
		apply := func(want int) {
			t.Helper()
			n, err := w.applyRetention()
			w.ok(err)
			w.equal("removed", want, n)
		}
		apply(0)
		inState(&w.lane, queue.Acked)
		inState(&w.lane, queue.Failed)
		w.advance(time.Hour)
		apply(0) // kept until purged
		w.ok(w.keepAcked(2 * time.Hour))
		inState(&w.lane, queue.Acked)
		apply(0)
		w.advance(time.Hour - time.Millisecond)
		apply(0)
		w.advance(time.Millisecond)
		apply(1)
		w.advance(time.Hour)
		w.ok(w.keepForever())
		apply(0)
		w.ok(w.keepAcked(2 * time.Hour))
		apply(1)
		keep := 2 * time.Hour
		w.counts(queue.Stats{Failed: 1, KeepAcked: &keep})
		for _, d := range []time.Duration{-1, century + 1} {
			w.is(w.keepAcked(d), queue.ErrInvalid)
		}
		w.on("other").counts(queue.Stats{}) // the setting is this queue's
	}},
	{name: "Rule30_RetentionSetToZeroLaterTakesWhatWasKept", run: func(t *testing.T, w *world) {
		inState(&w.lane, queue.Acked)
		w.ok(w.keepAcked(0))
		n, err := w.applyRetention()
		w.ok(err)
		w.equal("removed", 1, n)
	}},
	{name: "Rule30_VacuumShrinksTheFileAndKeepsTheJobs", run: func(t *testing.T, w *world) {
		jobs := make([]jobSpec, 300)
		for i := range jobs {
			jobs[i] = spec(repeat("x", 3000))
		}
		w.ok(second(w.putMany(jobs...)))
		w.mustPut("kept", priority(1))
		n, err := w.deleteMany(queue.DeleteFilter{State: queue.Ready})
		w.ok(err)
		w.equal("deleted", 301, n)
		w.mustPut("kept")
		before := w.number("PRAGMA page_count")
		w.ok(w.vacuum())
		if now := w.number("PRAGMA page_count"); now > before/2 {
			t.Errorf("%d pages after, %d before", now, before)
		}
		w.equal("all", []string{"kept"}, w.drain())
	}},
	{name: "Rule30_VacuumSaysBusyRatherThanHang", with: storeOpts{Busy: 30 * time.Millisecond}, run: func(t *testing.T, w *world) {
		release := holdWriteLock(w)
		w.is(w.vacuum(), queue.ErrBusy)
		release()
		w.ok(w.vacuum())
	}},
}

var pauseCases = []conformanceCase{
	{name: "Rule31_APausedQueueDeliversNothingAnywhere", run: func(t *testing.T, w *world) {
		w.mustPut("a")
		w.mustPut("b")
		j := w.mustGet()
		w.ok(w.pause())
		for i := range w.peers {
			w.peer(i).mustBeEmpty()
			w.is(second(w.peer(i).tryGetMany(5)), queue.ErrEmpty)
		}
		w.counts(queue.Stats{Ready: 1, Processing: 1, Paused: true})
		w.mustPut("put goes on")
		until, err := w.extend(j, time.Hour)
		w.ok(err)
		beats, _, err := w.heartbeat(2*time.Hour, j.Ref())
		w.ok(err)
		w.equal("heartbeats go on", until.Add(time.Hour), beats[0])
		w.ok(w.nack(j, errBoom))
		w.on("other").mustPut("x")
		w.on("other").mustGet()
		w.ok(w.resume())
		w.equal("resumed", []string{"a", "b", "put goes on"}, w.drain())
	}},
	{name: "Rule31_LeasesEndAlsoWhilePaused", run: func(t *testing.T, w *world) {
		w.mustPut("a")
		w.mustPut("b", deliveries(1))
		w.mustGet()
		w.mustGet()
		w.ok(w.pause())
		w.advance(queue.DefaultLease)
		w.mustBeEmpty() // a claim that finds a pause reclaims all the same
		w.counts(queue.Stats{Ready: 1, Failed: 1, Paused: true})
		w.equal("nothing left", queue.Reclaimed{}, w.mustReclaim())
	}},
	{name: "Rule31_APauseIsStoredInTheFile", run: func(t *testing.T, w *world) {
		w.ok(w.pause()) // before the queue has had any job
		w.mustPut("x")
		w.reopen(w.opts)
		w.mustBeEmpty()
		w.ok(w.pause())
		w.counts(queue.Stats{Ready: 1, Paused: true})
		w.ok(w.resume())
		w.ok(w.resume())
		w.equal("all", []string{"x"}, w.drain())
	}},
}
