package queue_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var storeCases = []conformanceCase{
	{name: "Rule39_AClosedStoreAnswersErrClosed", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		j := w.mustGet()
		q := w.peer(0)
		w.ok(q.run("shut", wireRequest{}).Err.error)
		w.ok(q.run("shut", wireRequest{}).Err.error) // closing again does nothing
		requests := map[string]wireRequest{
			"put": {}, "tryPut": {}, "putMany": {}, "tryPutMany": {}, "get": {}, "tryGet": {}, "getMany": {N: 2}, "tryGetMany": {N: 2},
			"ack": {}, "nack": {}, "fail": {}, "release": {}, "extend": {For: time.Second}, "ackMany": {}, "nackMany": {}, "failMany": {}, "releaseMany": {},
			"heartbeat": {For: time.Second}, "held": {}, "reclaim": {}, "peek": {}, "show": {}, "showKey": {Key: "k"}, "list": {State: queue.Ready},
			"all": {State: queue.Acked}, "retry": {}, "retryMany": {}, "delete": {}, "deleteMany": {Delete: queue.DeleteFilter{State: queue.Ready}},
			"cancel": {}, "runNow": {}, "pause": {}, "resume": {}, "keepAcked": {}, "keepForever": {}, "applyRetention": {}, "purge": {},
			"stats": {}, "queues": {}, "check": {}, "vacuum": {}, "tx": {}, "ackWith": {},
		}
		for op, r := range requests {
			r.ID, r.Receipt, r.Refs, r.Jobs = id, bin(j.Receipt), []queue.Ref{j.Ref()}, []jobSpec{spec("y")}
			if err := q.run(op, r).Err.error; err == nil {
				t.Errorf("%s works on a closed Store", op)
			} else {
				w.is(err, queue.ErrClosed)
			}
		}
		err := q.foreignTx(q.putStep("y")).Err.error
		w.is(err, queue.ErrClosed)
		for op := range queueOps {
			if _, ok := requests[op]; !ok && op != "checkPut" && op != "listFailed" {
				t.Errorf("%s isn't tried", op)
			}
		}
		w.reopen(storeOpts{})
		w.counts(queue.Stats{Processing: 1}) // closing settles nothing
		w.ok(w.ack(j))
	}},
	{name: "Rule39_OneStoreClosingLeavesTheOthersAlone", run: func(t *testing.T, w *world) {
		w.mustPut("x")
		j := w.mustGet()
		for range 3 {
			s := openLocalStore(w)
			w.ok(second(s.Default().Put(context.Background(), nil)))
			w.ok(s.Close())
		}
		for i := range w.peers {
			w.ok(second(w.peer(i).extend(j, time.Minute)))
		}
		w.ok(w.ack(j))
		w.equal("the others' jobs", 3, len(w.on("default").drain()))
	}},
	{name: "Rule39_CloseLetsAnOperationFinish", run: func(t *testing.T, w *world) {
		s := openLocalStore(w)
		inside, goOn := make(chan struct{}), make(chan struct{})
		tx := inBackground(func() (int, error) {
			return 0, s.Tx(context.Background(), func(tx *queue.Tx) error {
				close(inside)
				<-goOn
				return second(s.Default().PutTx(context.Background(), tx, []byte("x")))
			})
		})
		<-inside
		closed := inBackground(func() (int, error) { return 0, s.Close() })
		<-s.Done()
		waiting := inBackground(func() (int, error) { return 0, second(s.Default().Put(context.Background(), nil)) })
		w.is(second(waiting.await(t)), queue.ErrClosed) // also while the writer is taken
		closed.stillWaits(t)
		close(goOn)
		w.ok(second(tx.await(t)))
		w.ok(second(closed.await(t)))
		w.equal("stored", []string{"x"}, w.on("default").drain())
	}},
	{name: "Rule39_ManyStoresOpenAndCloseWhileOthersWork", run: func(t *testing.T, w *world) {
		var all []*pending[int]
		for i := range 4 {
			all = append(all, inBackground(func() (int, error) {
				for range 5 {
					s, err := queue.Open(w.dir)
					if err != nil {
						return i, err
					}
					if _, err := s.Default().Put(context.Background(), nil); err != nil {
						return i, err
					}
					if err := s.Close(); err != nil {
						return i, err
					}
				}
				return i, nil
			}), inBackground(func() (int, error) {
				for range 5 {
					if _, err := w.peer(i).put("x"); err != nil {
						return i, err
					}
				}
				return i, nil
			}))
		}
		for _, p := range all {
			w.ok(second(p.await(t)))
		}
		w.counts(queue.Stats{Ready: 20})
	}},
	{name: "Rule39_AStoreTellsWhatItIs", run: func(t *testing.T, w *world) {
		s := openLocalStore(w, queue.WithQueue("named"), queue.WithLease(time.Second), queue.WithMaxPayload(7))
		q := s.Default()
		w.equal("default queue", []any{"named", time.Second, 7}, []any{q.Name(), q.Lease(), q.MaxPayload()})
		other, err := s.Queue("other", queue.WithLease(time.Minute))
		w.ok(err)
		w.equal("another queue", []any{"other", time.Minute, 7}, []any{other.Name(), other.Lease(), other.MaxPayload()})
		w.equal("store", []any{true, w.dir, w.now()}, []any{other.Store() == s, s.Dir(), s.Now()})
		if s.Logger() == nil || strings.Count(queue.SQLiteVersion(), ".") != 2 {
			t.Error("no logger, or no version of SQLite")
		}
		select {
		case <-s.Done():
			t.Error("an open Store is done")
		default:
		}
	}},
	{name: "Rule39_ABadOptionIsReportedByTheCallThatTakesIt", run: func(t *testing.T, w *world) {
		s := openLocalStore(w)
		for name, o := range map[string]queue.Option{
			"busy": queue.WithBusyTimeout(-1), "durability": queue.WithDurability("some"), "clock": queue.WithClock(nil), "poll": queue.WithPoll(time.Microsecond),
			"logger": queue.WithLogger(nil), "name": queue.WithName("a\nb"), "long name": queue.WithName(repeat("x", 256)), "queue": queue.WithQueue(""),
			"lease": queue.WithLease(0), "retries": queue.WithMaxRetries(-1), "pending": queue.WithMaxPending(-1), "payload": queue.WithMaxPayload(0),
			"huge payload": queue.WithMaxPayload(math.MaxInt32),
		} {
			if _, err := queue.Open(w.dir, o); err == nil {
				t.Errorf("Open takes a bad %s", name)
			} else {
				w.is(err, queue.ErrInvalid)
			}
			_, err := s.Queue("jobs", o)
			w.is(err, queue.ErrInvalid)
		}
		for _, o := range []queue.Option{queue.WithBusyTimeout(time.Second), queue.WithDurability(queue.Full), queue.WithClock(time.Now), queue.WithPoll(time.Second),
			queue.AllowNetworkFS(), queue.MustExist(), queue.InlinePayloads(), queue.WithName("x")} {
			_, err := s.Queue("jobs", o)
			w.is(err, queue.ErrInvalid)
			w.says(err, "Open")
		}
	}},
	{name: "Rule04_EveryDurabilityStoresTheSame", run: func(t *testing.T, w *world) {
		for _, d := range []queue.Durability{queue.Full, queue.Balanced, queue.Normal} {
			w.reopen(storeOpts{Durability: d})
			for i := range 4 {
				w.mustPut(string(d), priority(int16(i)))
				j := w.mustGet()
				if i%2 == 0 {
					w.ok(w.nack(j, nil))
					j = w.mustGet()
				}
				w.ok(w.ack(j))
			}
		}
		w.counts(queue.Stats{Acked: 12})
	}},
	{name: "Rule11_InlinePayloadsKeepTheBytesInTheirRow", run: func(t *testing.T, w *world) {
		s := openLocalStore(w, queue.InlinePayloads())
		large := []byte(repeat("x", 100_000))
		w.ok(second(s.Default().Put(context.Background(), large)))
		w.ok(second(s.Default().PutMany(context.Background(), []queue.NewJob{{Payload: large}})))
		w.equal("rows with their bytes", 2, w.number("SELECT count(*) FROM messages WHERE queue = 'default' AND length(payload) = 100000"))
		w.equal("bytes", []string{string(large), string(large)}, w.on("default").drain())
	}},
}
