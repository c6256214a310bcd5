package queue_test

import (
	"testing"

	"github.com/localqueue/localqueue/queue"
)

// failedJobs makes n dead letters and returns their ids, as a page lists them that gets old from then on.
func failedJobs(q *lane, n int) (ids []int64) {
	q.w.t.Helper()
	jobs := make([]jobSpec, n)
	for i := range jobs {
		jobs[i] = spec("x", deliveries(1))
	}
	q.w.ok(second(q.putMany(jobs...)))
	got, err := q.tryGetMany(n)
	q.w.ok(err)
	for _, j := range got {
		q.w.ok(q.fail(j, errBoom))
	}
	ids = q.ids(queue.Failed)
	q.w.equal("failed", n, len(ids))
	return ids
}

// A page of dead letters is old when somebody acts on it: a worker of another process has retried and settled some.
func TestCase24_ABulkRetryGoesByEachRowsOwnStateAndCountsWhatItChanged(t *testing.T) {
	w := newWorld(t, shapes[2], storeOpts{})
	page := failedJobs(&w.lane, 10)
	matched, err := w.peer(0).retryMany(queue.RetryFilter{DryRun: true})
	w.ok(err)
	w.equal("on the page", queue.RetryReport{Matched: 10}, matched)
	worker := w.peer(1)
	var acked, leased, deleted = page[0:3], page[3:5], page[5]
	for _, id := range append(acked[:3:3], leased...) {
		w.ok(worker.retry(id))
		j := worker.mustGet()
		w.equal("job", id, j.ID)
		if id < leased[0] {
			w.ok(worker.ack(j))
		}
	}
	w.ok(worker.delete(deleted))
	before := map[int64]*queue.Record{}
	for _, id := range page[:5] {
		before[id] = w.mustShow(id)
	}

	report, err := w.peer(0).retryMany(queue.RetryFilter{})
	w.ok(err)
	w.equal("really retried", queue.RetryReport{Matched: 4, Retried: 4}, report)
	for id, was := range before {
		w.equal("what the worker has done", was, w.mustShow(id))
	}
	for _, id := range append(acked[:3:3], leased...) { // one by one, as a page's own buttons do
		w.is(w.peer(2).retry(id), queue.ErrNotFailed)
	}
	w.is(w.peer(2).retry(deleted), queue.ErrNotFound)
	again, err := w.peer(0).retryMany(queue.RetryFilter{})
	w.ok(err)
	w.equal("again", queue.RetryReport{}, again)
	w.counts(queue.Stats{Ready: 4, Processing: 2, Acked: 3})
	w.verify()
}

func TestCase24_BulkActionsAndWorkersAtOnceChangeEachJobOnce(t *testing.T) {
	w := newWorld(t, shapes[2], storeOpts{})
	page := failedJobs(&w.lane, sized(200, 1000))
	bulk := inBackground(func() (n int, err error) {
		for {
			rep, err := w.peer(0).retryMany(queue.RetryFilter{Limit: 30})
			n += rep.Retried
			if err != nil || rep.Matched == 0 {
				return n, err
			}
		}
	})
	oneByOne := inBackground(func() (n int, err error) {
		for i := len(page) - 1; i >= 0; i-- {
			if w.peer(1).retry(page[i]) == nil { // else the bulk, or the delete, came first
				n++
			}
		}
		return n, nil
	})
	removed := inBackground(func() (n int, err error) {
		for i := 0; i < len(page); i += 7 {
			if w.peer(2).delete(page[i]) == nil { // unless a worker has it
				n++
			}
		}
		return n, nil
	})
	worked := inBackground(func() (n int, err error) {
		for n < len(page)/3 {
			j, err := w.peer(1).comes()
			if err == nil {
				err = w.peer(1).ack(j)
			}
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	})
	retried := 0
	for _, p := range []*pending[int]{bulk, oneByOne} {
		n, err := p.await(t)
		w.ok(err)
		retried += n
	}
	deleted, err := removed.await(t)
	w.ok(err)
	acked, err := worked.await(t)
	w.ok(err)
	st, err := w.stats()
	w.ok(err)
	w.equal("rows left", len(page)-deleted, int(st.Ready+st.Processing+st.Acked+st.Failed))
	w.equal("dead letters left", int64(0), st.Failed)
	if retried > len(page) || retried < len(page)-deleted {
		t.Errorf("%d retries were counted, of %d dead letters of which %d were deleted", retried, len(page), deleted)
	}
	if int(st.Acked) > acked || int(st.Acked) < acked-deleted {
		t.Errorf("%d jobs are acked, after %d acks and %d deletions", st.Acked, acked, deleted)
	}
	w.verify()
}
