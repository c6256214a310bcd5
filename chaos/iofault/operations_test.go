package iofault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

// operation is one call of a user's, on the directory that populate fills.
type operation struct {
	name    string
	changes scope
	run     func(*world) error
}

// scope is what a failed operation may have done.
type scope int

const (
	nothing scope = iota // it only reads
	whole                // one transaction
	steps                // several: each is whole
)

// world is what an operation has to work with: an open Store, and the receipts of the leased jobs.
type world struct {
	ctx      context.Context
	s        *queue.Store
	q        *queue.Queue
	receipts map[int64]string
	log      *counting
}

func (w *world) refs(ids ...int64) (all []queue.Ref) {
	for _, id := range ids {
		all = append(all, queue.Ref{ID: id, Receipt: w.receipts[id]})
	}
	return all
}

func (w *world) queue(name string) *queue.Queue {
	q, err := w.s.Queue(name)
	if err != nil {
		panic(err)
	}
	return q
}

var (
	errBoom  = errors.New("boom")
	errFound = errors.New("check has findings")
)

// each is the error of a batch, or the first of its answers.
func each(errs []error, err error) error { return cmp.Or(err, cmp.Or(errs...)) }

// operations are all that can be asked of an open Store.
var operations = []operation{
	{"put", whole, func(w *world) error {
		return second(w.q.Put(w.ctx, payload(5000), queue.JobID("new"), queue.Header("a", "b")))
	}},
	{"put of a duplicate", nothing, func(w *world) error { return second(w.q.Put(w.ctx, payload(1), queue.JobID("dead"))) }},
	{"put of a batch", whole, func(w *world) error {
		jobs := make([]queue.NewJob, 20)
		for i := range jobs {
			jobs[i].Payload = payload(1000 * i)
		}
		return second(w.q.PutMany(w.ctx, jobs))
	}},
	{"put that spills", whole, func(w *world) error { // more than the page cache holds: statements write too
		jobs := make([]queue.NewJob, 18)
		for i := range jobs {
			jobs[i].Payload = payload(1 << 20)
		}
		return second(w.q.PutMany(w.ctx, jobs))
	}},
	{"get", whole, func(w *world) error { return second(w.q.TryGet(w.ctx)) }},
	{"get of many", whole, func(w *world) error { return second(w.q.TryGetMany(w.ctx, 3)) }},
	{"get that waits", whole, func(w *world) error { return second(w.q.Get(w.ctx)) }},
	{"ack", whole, func(w *world) error { return w.q.Ack(w.ctx, leasedA, w.receipts[leasedA]) }},
	{"ack of many", whole, func(w *world) error { return each(w.q.AckMany(w.ctx, w.refs(leasedA, leasedB))) }},
	{"ack with a put", whole, func(w *world) error {
		return w.q.AckWith(w.ctx, leasedA, w.receipts[leasedA], func(tx *queue.Tx) error {
			return second(w.q.PutTx(w.ctx, tx, payload(5000)))
		})
	}},
	{"nack", whole, func(w *world) error {
		return w.q.Nack(w.ctx, leasedA, w.receipts[leasedA], errBoom, queue.Delay(time.Hour))
	}},
	{"nack of many", whole, func(w *world) error { return each(w.q.NackMany(w.ctx, w.refs(leasedA, leasedB), errBoom)) }},
	{"fail", whole, func(w *world) error { return w.q.Fail(w.ctx, leasedA, w.receipts[leasedA], errBoom) }},
	{"fail of many", whole, func(w *world) error { return each(w.q.FailMany(w.ctx, w.refs(leasedA, leasedB), errBoom)) }},
	{"extend", whole, func(w *world) error {
		return second(w.q.Extend(w.ctx, leasedA, w.receipts[leasedA], longLease))
	}},
	{"heartbeat", whole, func(w *world) error {
		beats, err := w.q.Heartbeat(w.ctx, w.refs(leasedA, leasedB), longLease)
		for _, b := range beats {
			err = cmp.Or(err, b.Err)
		}
		return err
	}},
	{"release", whole, func(w *world) error { return w.q.Release(w.ctx, leasedA, w.receipts[leasedA]) }},
	{"release of many", whole, func(w *world) error { return each(w.q.ReleaseMany(w.ctx, w.refs(leasedA, leasedB))) }},
	{"reclaim", steps, func(w *world) error { return second(w.queue(lapsedQueue).ReclaimExpired(w.ctx)) }},
	{"purge", steps, func(w *world) error { return second(w.q.Purge(w.ctx, queue.PurgeOptions{})) }},
	{"retention", whole, func(w *world) error { return w.q.KeepAcked(w.ctx, time.Hour) }},
	{"retry", whole, func(w *world) error { return w.q.RetryFailed(w.ctx, failedA) }},
	{"retry of many", steps, func(w *world) error { return second(w.q.RetryMany(w.ctx, queue.RetryFilter{})) }},
	{"delete", whole, func(w *world) error { return w.q.Delete(w.ctx, readyA) }},
	{"delete of many", steps, func(w *world) error {
		return second(w.q.DeleteMany(w.ctx, queue.DeleteFilter{State: queue.Failed}))
	}},
	{"cancel", whole, func(w *world) error { return w.q.Cancel(w.ctx, leasedA) }},
	{"run now", whole, func(w *world) error { return w.q.RunNow(w.ctx, delayedA) }},
	{"pause", whole, func(w *world) error { return w.q.Pause(w.ctx) }},
	{"resume", whole, func(w *world) error { return w.queue(pausedQueue).Resume(w.ctx) }},
	{"transaction", whole, func(w *world) error {
		return w.s.Tx(w.ctx, func(tx *queue.Tx) error {
			if _, err := w.q.PutTx(w.ctx, tx, payload(4000)); err != nil {
				return err
			}
			if err := w.q.AckTx(w.ctx, tx, leasedB, w.receipts[leasedB]); err != nil {
				return err
			}
			return w.q.FailTx(w.ctx, tx, leasedC, w.receipts[leasedC], errBoom)
		})
	}},
	{"vacuum", nothing, func(w *world) error { return w.s.Vacuum(w.ctx) }},
	{"stats", nothing, func(w *world) error { return cmp.Or(second(w.q.Stats(w.ctx)), second(w.s.Queues(w.ctx))) }},
	{"peek", nothing, func(w *world) error { return second(w.q.Peek(w.ctx)) }},
	{"list", nothing, func(w *world) error {
		_, err := w.q.ListFailed(w.ctx, queue.ListOptions{})
		for _, e := range w.q.All(w.ctx, queue.Ready) {
			err = cmp.Or(err, e)
		}
		return err
	}},
	{"show", nothing, func(w *world) error {
		_, _, err := w.q.Show(w.ctx, failedA)
		return err
	}},
	{"check", nothing, func(w *world) error {
		found, err := w.s.Check(w.ctx, false)
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("%w: %d", errFound, len(found))
		}
		return err
	}},
}

func operationNamed(name string) operation {
	for _, o := range operations {
		if o.name == name {
			return o
		}
	}
	panic("no operation " + name)
}

// outcomes are the answers of an operation that is many calls: to each the job_id that it was to store.
type outcomes struct {
	mu  sync.Mutex
	all []answer
}

func (o *outcomes) put(w *world, key string, n int) {
	_, err := w.q.Put(w.ctx, payload(n), queue.JobID(key))
	a := answerOf(err)
	a.Key = key
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, a)
}

const failedMark = "failed"

func noteFailure() {
	marks, err := preload.OpenMarks()
	if err == nil {
		err = errors.Join(marks.Mark([]byte(failedMark)), marks.Close())
	}
	if err != nil {
		panic(err)
	}
}

// series are operations of many calls.
var series = map[string]func(*world, *outcomes){
	// Enough for checkpoints, beside the writer and by it, and for the WAL to start anew.
	"many pages": func(w *world, o *outcomes) {
		for i := range 200 {
			o.put(w, fmt.Sprintf("page-%d", i), 40_000)
		}
	},
	// One by one, with each failure noted in the log of what SQLite did.
	"a few puts": func(w *world, o *outcomes) {
		for i := range 6 {
			if o.put(w, fmt.Sprintf("put-%d", i), 300*i); o.all[i].Err != "" {
				noteFailure()
			}
		}
	},
	// Callers that share commits.
	"many callers": func(w *world, o *outcomes) {
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() { o.put(w, fmt.Sprintf("caller-%d", i), 500) })
		}
		all.Wait()
	},
}
