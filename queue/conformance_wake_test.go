package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Every test here waits for a wake that must come by a bell, of the Store itself or of another: the poll is an hour.

// wake is something that must end the wait of a receiver (or of a put, where room is set).
type wake struct {
	on   string
	make func(q *lane) delivery // before the wait; may be nil
	ring func(q *lane, d delivery) error
	room bool
}

var wakes = []wake{
	{on: "APut", ring: func(q *lane, _ delivery) error { return second(q.put("x")) }},
	{on: "ABatch", ring: func(q *lane, _ delivery) error { return second(q.putMany(spec("x"), spec("y", header("h", "v")))) }},
	{on: "APutInATransaction", ring: func(q *lane, _ delivery) error { return q.tx(q.putStep("x")).Err.error }},
	{on: "AFollowUp", make: leased, ring: func(q *lane, d delivery) error { return q.ackWith(d, q.putStep("x")) }},
	{on: "ANack", make: leased, ring: func(q *lane, d delivery) error { return q.nack(d, errBoom) }},
	{on: "ABatchOfNacks", make: leased, ring: func(q *lane, d delivery) error {
		return firstOf(q.many("nackMany", []queue.Ref{d.Ref()}, errBoom))
	}},
	{on: "ARelease", make: leased, ring: func(q *lane, d delivery) error { return q.release(d) }},
	{on: "ARetry", make: dead, ring: func(q *lane, d delivery) error { return q.retry(d.Ref().ID) }},
	{on: "ABulkRetry", make: dead, ring: func(q *lane, _ delivery) error { return second(q.retryMany(queue.RetryFilter{})) }},
	{on: "AResume", make: pausedJob, ring: func(q *lane, _ delivery) error { return q.resume() }},
	{on: "ARunNow", make: delayedJob, ring: func(q *lane, d delivery) error { return q.runNow(d.Ref().ID) }},
	{on: "AReclaim", make: leased, ring: leaseEnds},

	{on: "AnAck", room: true, make: leased, ring: func(q *lane, d delivery) error { return q.ack(d) }},
	{on: "ABatchOfAcks", room: true, make: leased, ring: func(q *lane, d delivery) error { return firstOf(q.ackMany(d.Ref())) }},
	{on: "AnAckInATransaction", room: true, make: leased, ring: func(q *lane, d delivery) error { return q.tx(q.settleStep("ack", d, nil)).Err.error }},
	{on: "AFail", room: true, make: leased, ring: func(q *lane, d delivery) error { return q.fail(d, errBoom) }},
	{on: "TheLastNack", room: true, make: leased, ring: func(q *lane, d delivery) error { return q.nack(d, errBoom) }},
	{on: "ACancel", room: true, make: leased, ring: func(q *lane, d delivery) error { return q.cancel(d.Ref().ID) }},
	{on: "ADelete", room: true, make: delayedJob, ring: func(q *lane, d delivery) error { return q.delete(d.Ref().ID) }},
	{on: "ABulkDelete", room: true, make: delayedJob, ring: func(q *lane, _ delivery) error {
		return second(q.deleteMany(queue.DeleteFilter{State: queue.Delayed}))
	}},
	{on: "TheLastLeasesEnd", room: true, make: leased, ring: leaseEnds},
}

// own makes the jobs of the wakes with one delivery for puts that wait for room, with many for receivers.
func own(q *lane, opts ...jobOpt) int64 {
	if q.with.MaxPending > 0 {
		opts = append(opts, deliveries(1))
	}
	return q.mustPut("x", opts...)
}

func leased(q *lane) delivery { own(q); return q.mustGet() }

func leaseEnds(q *lane, _ delivery) error {
	q.w.advance(queue.DefaultLease)
	return second(q.reclaim())
}

func dead(q *lane) delivery {
	d := leased(q)
	q.w.ok(q.fail(d, errBoom))
	return d
}

func delayedJob(q *lane) delivery { return aRef{ID: own(q, delayed(time.Hour))} }

func pausedJob(q *lane) delivery {
	q.w.ok(q.pause())
	own(q)
	return nil
}

var wakeCases = append(wakeTable(), []conformanceCase{
	{name: "Rule15_ABatchOfKWakesK", with: storeOpts{Poll: time.Hour}, run: func(t *testing.T, w *world) {
		q := w.peer(0)
		const k = 4
		var gets []*pending[*queue.Job]
		for range k + 2 {
			gets = append(gets, inBackground(func() (*queue.Job, error) {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				return q.get(ctx)
			}))
		}
		w.untilWaiting(k + 2)
		w.ok(second(q.putMany(spec("a"), spec("b"), spec("c", priority(1)), spec("d"))))
		w.untilWaiting(2)
		w.ok(second(q.putMany(spec("e"), spec("f"))))
		seen := map[string]bool{}
		for _, g := range gets {
			j, err := g.await(t)
			w.ok(err)
			seen[string(j.Payload)] = true
		}
		w.equal("jobs", k+2, len(seen))
	}},
	{name: "Rule15_ADelayedJobWakesWhenItFallsDue", with: storeOpts{Poll: time.Hour, RealClock: true}, run: func(t *testing.T, w *world) {
		q := w.peer(0)
		q.mustPut("x", delayed(40*time.Millisecond))
		j, err := q.mustCome(t)
		w.ok(err)
		w.ok(q.nack(j, errBoom, after(30*time.Millisecond)))
		j, err = q.mustCome(t)
		w.ok(err)
		w.ok(q.release(j, after(30*time.Millisecond)))
		_, err = q.mustCome(t)
		w.ok(err)
	}},
	{name: "Rule15_AJobPutWithADelayWhileAReceiverWaitsWakesItInTime", with: storeOpts{Poll: time.Hour, RealClock: true}, run: func(t *testing.T, w *world) {
		q := w.peer(0)
		get := inBackground(func() (*queue.Job, error) { return q.comes() })
		w.untilWaiting(1)
		q.mustPut("x", delayed(30*time.Millisecond))
		_, err := get.await(t)
		w.ok(err)
	}},
	{name: "Rule16_ALeasesEndWakes", with: storeOpts{Poll: time.Hour, RealClock: true}, run: func(t *testing.T, w *world) {
		q := w.peer(0)
		q.mustPut("x")
		q.options(lease(40 * time.Millisecond)).mustGet()
		j, err := q.mustCome(t) // with a lease that doesn't end while the Stores' counts are compared
		w.ok(err)
		w.equal("again", 2, j.Attempt)
	}},
	{name: "Rule16_ALeaseCutShortWhileAReceiverWaitsWakesItInTime", with: storeOpts{Poll: time.Hour, RealClock: true}, run: func(t *testing.T, w *world) {
		q := w.peer(0)
		q.mustPut("x")
		held := q.mustGet()
		get := inBackground(q.comes)
		w.untilWaiting(1)
		w.ok(second(q.extend(held, 30*time.Millisecond)))
		j, err := get.await(t)
		w.ok(err)
		w.equal("again", 2, j.Attempt)
	}},
	{name: "Rule09_TheCommitOfAForeignTransactionWakes", run: func(t *testing.T, w *world) {
		get := inBackground(func() (*queue.Job, error) { return w.peer(0).comes() })
		w.untilWaiting(1)
		w.ok(w.peer(1).foreignTx(w.putStep("x")).Err.error)
		_, err := get.await(t)
		w.ok(err)
	}},
	{name: "Rule28_AJobOfAnotherProgramWakes", run: func(t *testing.T, w *world) {
		get := inBackground(func() (*queue.Job, error) { return w.peer(0).comes() })
		w.untilWaiting(1)
		w.raw(`INSERT INTO messages (queue, payload, status, max_attempts, available_at, created_at, updated_at) VALUES ('jobs', x'78', 0, 4, ?1, ?1, ?1)`, w.now().UnixMilli())
		_, err := get.await(t)
		w.ok(err)
	}},
	{name: "Rule39_ClosingTheStoreEndsBlockedCallsAtOnce", with: storeOpts{Poll: time.Hour}, run: func(t *testing.T, w *world) {
		q := w.peer(0)
		full := w.on("full").peer(0).options(atMost(1))
		full.mustPut("x")
		get := inBackground(func() (*queue.Job, error) { return q.comes() })
		many := inBackground(func() ([]*queue.Job, error) { return q.getMany(context.Background(), 5) })
		put := inBackground(func() (queue.PutResult, error) { return full.put("y") })
		batch := inBackground(func() ([]queue.PutResult, error) { return full.putMany(spec("y")) })
		w.untilWaiting(4)
		w.ok(q.run("shut", wireRequest{}).Err.error)
		w.is(second(get.await(t)), queue.ErrClosed)
		w.is(second(many.await(t)), queue.ErrClosed)
		w.is(second(put.await(t)), queue.ErrClosed)
		w.is(second(batch.await(t)), queue.ErrClosed)
		w.reopen(storeOpts{})
		full.counts(queue.Stats{Ready: 1})
	}},
}...)

// comes is Get within the suite's patience.
func (l *lane) comes() (*queue.Job, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return l.get(ctx)
}

// mustCome starts a Get that has to wait, and returns what it got.
func (l *lane) mustCome(t *testing.T) (*queue.Job, error) {
	return inBackground(l.comes).await(t)
}

// wakeTable makes two cases of each wake: rung by the same Store, and by another one.
func wakeTable() (cases []conformanceCase) {
	for _, k := range wakes {
		rule, who := "Rule15_GetWakesOn", func(q *lane) *pending[int] {
			return inBackground(func() (int, error) { return 0, second(q.comes()) })
		}
		if k.room {
			rule, who = "Rule10_AWaitingPutWakesOn", func(q *lane) *pending[int] {
				return inBackground(func() (int, error) { return 0, second(q.put("waits")) })
			}
		}
		run := func(ringer int) func(t *testing.T, w *world) {
			return func(t *testing.T, w *world) {
				waiter, other := w.peer(0), w.peer(ringer)
				if k.room {
					waiter, other = waiter.options(atMost(1)), other.options(atMost(1))
				}
				var d delivery
				if k.make != nil {
					d = k.make(other)
				}
				waits := who(waiter)
				w.untilWaiting(1)
				waits.stillWaits(t)
				w.ok(k.ring(other, d))
				_, err := waits.await(t)
				w.ok(err)
			}
		}
		cases = append(cases, conformanceCase{name: rule + k.on, with: storeOpts{Poll: time.Hour}, run: run(0)},
			conformanceCase{name: rule + k.on + "OfAnotherStore", with: storeOpts{Poll: time.Hour}, run: run(1)})
	}
	return cases
}
