package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// holdWriteLock takes SQLite's write lock as another program would, until it is released.
func holdWriteLock(w *world) (release func()) {
	w.t.Helper()
	db, err := openRaw(w.dir)
	w.ok(err)
	tx, err := db.BeginTx(context.Background(), nil) // immediate
	w.ok(err)
	released := false
	release = func() {
		w.t.Helper()
		if !released {
			released = true
			w.ok(errors.Join(ignoreDone(tx.Rollback()), db.Close()))
		}
	}
	w.t.Cleanup(release)
	return release
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// writers are operations that need the write lock. Each has a queue of its own, with a job in the state that it takes.
var writers = map[string]struct {
	from queue.State
	run  func(q *lane, d delivery) error
}{
	"put":       {"", func(q *lane, _ delivery) error { return second(q.put("y")) }},
	"putMany":   {"", func(q *lane, _ delivery) error { return second(q.putMany(spec("y"), spec("z"))) }},
	"tryGet":    {queue.Ready, func(q *lane, _ delivery) error { return second(q.tryGet()) }},
	"get":       {queue.Ready, func(q *lane, _ delivery) error { return second(q.comes()) }},
	"ack":       {queue.Leased, func(q *lane, d delivery) error { return q.ack(d) }},
	"nack":      {queue.Leased, func(q *lane, d delivery) error { return q.nack(d, errBoom) }},
	"fail":      {queue.Leased, func(q *lane, d delivery) error { return q.fail(d, errBoom) }},
	"release":   {queue.Leased, func(q *lane, d delivery) error { return q.release(d) }},
	"extend":    {queue.Leased, func(q *lane, d delivery) error { return second(q.extend(d, time.Minute)) }},
	"heartbeat": {queue.Leased, func(q *lane, d delivery) error { return third(q.heartbeat(time.Minute, d.Ref())) }},
	"ackMany":   {queue.Leased, func(q *lane, d delivery) error { return firstOf(q.ackMany(d.Ref())) }},
	"ackWith":   {queue.Leased, func(q *lane, d delivery) error { return q.ackWith(d, q.putStep("y")) }},
	"tx":        {"", func(q *lane, _ delivery) error { return q.tx(q.putStep("y")).Err.error }},
	"retry":     {queue.Failed, func(q *lane, d delivery) error { return q.retry(d.Ref().ID) }},
	"retryMany": {queue.Failed, func(q *lane, _ delivery) error { return second(q.retryMany(queue.RetryFilter{})) }},
	"cancel":    {queue.Ready, func(q *lane, d delivery) error { return q.cancel(d.Ref().ID) }},
	"delete":    {queue.Ready, func(q *lane, d delivery) error { return q.delete(d.Ref().ID) }},
	"runNow":    {queue.Delayed, func(q *lane, d delivery) error { return q.runNow(d.Ref().ID) }},
	"purge":     {queue.Acked, func(q *lane, _ delivery) error { return second(q.purge(0, true)) }},
	"pause":     {"", func(q *lane, _ delivery) error { return q.pause() }},
	"keepAcked": {"", func(q *lane, _ delivery) error { return q.keepAcked(time.Hour) }},
	"reclaim":   {"expired", func(q *lane, _ delivery) error { return second(q.reclaim()) }},
}

// ready makes what the writers take.
func readyWriters(w *world) map[string]delivery {
	w.t.Helper()
	made := map[string]delivery{}
	for name, op := range writers {
		q := w.on(name)
		switch op.from {
		case "":
		case "expired":
			made[name] = aRef{ID: q.mustPut("x")}
			w.raw("UPDATE messages SET lease_until = NULL WHERE id = ?", q.mustGet().ID)
		case queue.Ready:
			made[name] = aRef{ID: q.mustPut("x")}
		default:
			made[name] = inState(q, op.from)
		}
	}
	return made
}

var busyCases = []conformanceCase{
	{name: "Rule40_ALockIsWaitedFor", run: func(t *testing.T, w *world) {
		made := readyWriters(w)
		release := holdWriteLock(w)
		all := map[string]*pending[int]{}
		for name, op := range writers {
			all[name] = inBackground(func() (int, error) { return 0, op.run(w.on(name), made[name]) })
		}
		for name, p := range all {
			select {
			case a := <-p.done:
				t.Fatalf("%s doesn't wait: %v", name, a.err)
			default:
			}
		}
		all["put"].stillWaits(t)
		release()
		for name, p := range all {
			if _, err := p.await(t); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}},
	{name: "Rule40_AfterTheBusyTimeoutItIsErrBusyAndNothingIsChanged", with: storeOpts{Busy: 5 * time.Millisecond}, run: func(t *testing.T, w *world) {
		made := readyWriters(w)
		release := holdWriteLock(w)
		before := w.recount()
		for name, op := range writers {
			err := op.run(w.on(name), made[name])
			if err == nil {
				t.Fatalf("%s works without the lock", name)
			}
			w.is(err, queue.ErrBusy)
		}
		release()
		w.equal("nothing changed", before, w.recount())
		for name, op := range writers { // each lease is still usable
			if err := op.run(w.on(name), made[name]); err != nil {
				t.Errorf("%s after the lock: %v", name, err)
			}
		}
	}},
	{name: "Rule40_ADeadlineIsKeptWhileWaitingForTheLock", run: func(t *testing.T, w *world) {
		w.mustPut("x")
		release := holdWriteLock(w)
		for _, op := range []string{"put", "tryPut", "get", "tryGet", "getMany", "pause", "reclaim"} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			out := w.do(ctx, op, wireRequest{Jobs: []jobSpec{spec("y")}, N: 3})
			cancel()
			if op == "reclaim" { // nothing to reclaim takes no lock
				w.ok(out.Err.error)
				continue
			}
			w.is(out.Err.error, queue.ErrBusy, context.DeadlineExceeded)
			if took := time.Since(began); took > queue.DefaultBusy/2 {
				t.Errorf("%s kept its caller for %v", op, took)
			}
		}
		release()
		w.counts(queue.Stats{Ready: 1})
	}},
	{name: "Rule40_ACancelledCallerLeavesNothingBehind", run: func(t *testing.T, w *world) {
		release := holdWriteLock(w)
		ctx, cancel := context.WithCancel(context.Background())
		put := inBackground(func() (queue.PutResult, error) { return w.putUntil(ctx, "x") })
		put.stillWaits(t)
		cancel()
		w.is(second(put.await(t)), context.Canceled)
		release()
		w.mustPut("y")
		w.equal("all", []string{"y"}, w.drain())
	}},
	{name: "Rule40_CallersOfOneStoreWaitForEachOtherWithTheirOwnContexts", run: func(t *testing.T, w *world) {
		s := openLocalStore(w)
		w.ok(s.Tx(context.Background(), func(*queue.Tx) error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			w.is(second(s.Default().Put(ctx, nil)), queue.ErrBusy, context.DeadlineExceeded)
			return nil
		}))
		w.on("default").mustBeEmpty()
	}},
	{name: "Rule15_ALockIsNeverReportedAsEmpty", with: storeOpts{Busy: 5 * time.Millisecond}, run: func(t *testing.T, w *world) {
		w.mustPut("x")
		release := holdWriteLock(w)
		for range 5 {
			w.is(second(w.tryGet()), queue.ErrBusy)
			w.is(second(w.tryGetMany(3)), queue.ErrBusy)
			w.is(second(w.comes()), queue.ErrBusy)
		}
		release()
		w.mustGet()
	}},
	{name: "Rule15_AnIdlePollTakesNoWriteLock", with: storeOpts{Busy: 5 * time.Millisecond}, run: func(t *testing.T, w *world) {
		w.mustPut("later", delayed(time.Hour))
		w.mustPut("held")
		w.mustGet()
		for range w.peers {
			w.mustBeEmpty()
		}
		defer holdWriteLock(w)()
		for range 2 * len(w.peers) {
			w.mustBeEmpty()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		err := second(w.get(ctx))
		w.is(err, context.DeadlineExceeded)
		w.equal("busy", false, errors.Is(err, queue.ErrBusy))
	}},
	{name: "Rule40_LooksDoNotWaitForAWriter", with: storeOpts{Busy: 5 * time.Millisecond}, run: func(t *testing.T, w *world) {
		id := w.mustPut("x", key("k"))
		defer holdWriteLock(w)()
		w.counts(queue.Stats{Ready: 1})
		w.mustShow(id)
		w.ok(third(w.showKey("k")))
		w.ok(second(w.peek()))
		w.ok(second(w.queues()))
		w.ok(second(w.check(false)))
		w.ok(second(w.held(queue.Ref{ID: id})))
		w.ok(second(w.retryMany(queue.RetryFilter{DryRun: true})))
		w.ok(second(w.deleteMany(queue.DeleteFilter{State: queue.Ready, DryRun: true})))
		w.equal("listed", []int64{id}, w.ids(queue.Ready))
	}},
	{name: "Rule13_ALeaseCountsFromTheEndOfTheWaitForTheLock", run: func(t *testing.T, w *world) {
		w.mustPut("x")
		release := holdWriteLock(w)
		get := inBackground(w.tryGet)
		put := inBackground(func() (queue.PutResult, error) { return w.put("y", delayed(time.Second)) })
		get.stillWaits(t)
		w.advance(10 * time.Second)
		release()
		j, err := get.await(t)
		w.ok(err)
		w.equal("the lease's end", w.now().Add(queue.DefaultLease), j.LeaseUntil)
		res, err := put.await(t)
		w.ok(err)
		w.equal("due", w.now().Add(time.Second), w.mustShow(res.ID).AvailableAt)
	}},
}
