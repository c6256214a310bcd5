package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// allStates are those a job can be in.
var allStates = []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed}

// keyedInState makes a job with a key, in a state.
func keyedInState(q *lane, s queue.State, opts ...jobOpt) int64 {
	q.w.t.Helper()
	if s == queue.Delayed {
		opts = append(opts, delayed(time.Hour))
	}
	id := q.mustPut("first", opts...)
	if s == queue.Ready || s == queue.Delayed {
		return id
	}
	j := q.mustGet()
	switch s {
	case queue.Acked:
		q.w.ok(q.ack(j))
	case queue.Failed:
		q.w.ok(q.fail(j, errBoom))
	}
	return id
}

var keyCases = []conformanceCase{
	{name: "Rule05_AKeyIsUniqueWhileItsRowExists", run: func(t *testing.T, w *world) {
		for _, s := range allStates {
			q := w.on(string(s))
			id := keyedInState(q, s, key("k"))
			before := q.mustShow(id)
			for _, again := range []func() (queue.PutResult, error){
				func() (queue.PutResult, error) { return q.put("second", key("k"), priority(9), header("a", "b")) },
				func() (queue.PutResult, error) { return q.tryPut("second", key("k"), whilePending()) },
				func() (queue.PutResult, error) { return q.put("second", key("k"), delayed(time.Second)) },
			} {
				res, err := again()
				w.ok(err)
				w.equal("a repeat while "+string(s), queue.PutResult{ID: id, Duplicate: true}, res)
			}
			w.equal("the job after the repeats", before, q.mustShow(id))
			if s != queue.Leased {
				w.ok(q.delete(id))
				if fresh := q.mustPut("third", key("k")); fresh <= id {
					t.Fatalf("id %d after %d", fresh, id)
				}
			}
		}
	}},
	{name: "Rule05_APendingKeyIsFreeOnceItsJobHasFinished", run: func(t *testing.T, w *world) {
		for _, s := range allStates {
			q := w.on(string(s))
			id := keyedInState(q, s, key("k"), whilePending())
			w.equal("it shows the scope", true, q.mustShow(id).Pending)
			res, err := q.put("second", key("k"), whilePending())
			w.ok(err)
			if s == queue.Acked || s == queue.Failed {
				w.equal("new", false, res.Duplicate)
				newest, _, err := q.showKey("k")
				w.ok(err)
				w.equal("the newest under the key", res.ID, newest.ID)
			} else {
				w.equal("a repeat while "+string(s), queue.PutResult{ID: id, Duplicate: true}, res)
			}
		}
	}},
	{name: "Rule05_APutMeetsWhateverHolderThereIs", run: func(t *testing.T, w *world) {
		forever, pending := w.on("forever"), w.on("pending")
		id := keyedInState(forever, queue.Acked, key("k"))
		res, err := forever.put("x", key("k"), whilePending())
		w.ok(err)
		w.equal("a pending key meets one that is kept", queue.PutResult{ID: id, Duplicate: true}, res)
		keyedInState(pending, queue.Acked, key("k"), whilePending())
		newer := pending.mustPut("x", key("k"))
		res, err = pending.put("y", key("k"), whilePending())
		w.ok(err)
		w.equal("and the other way round", queue.PutResult{ID: newer, Duplicate: true}, res)
	}},
	{name: "Rule05_KeysAreBoundedAndNeverEmpty", run: func(t *testing.T, w *world) {
		for _, k := range []string{"", strings.Repeat("k", 1025), "a\nb", "\x00", "\xff"} {
			_, err := w.put("x", key(k))
			w.is(err, queue.ErrInvalid)
			w.is(w.checkPut("x", key(k)), queue.ErrInvalid)
		}
		_, err := w.put("x", whilePending())
		w.is(err, queue.ErrInvalid)
		w.says(err, "JobID")
		for _, k := range []string{" ", strings.Repeat("k", 1024), "日本 '\"%_", "null", "1"} {
			id := w.mustPut("x", key(k))
			j := w.mustGet()
			w.equal("key", k, j.JobID)
			w.ok(w.ack(j))
			rec, _, err := w.showKey(k)
			w.ok(err)
			w.equal("shown by its key", id, rec.ID)
		}
		_, _, err = w.showKey("none")
		w.is(err, queue.ErrNotFound)
	}},
	{name: "Rule05_OneOfManyPutsOfAKeyStores", run: func(t *testing.T, w *world) {
		results := make(chan queue.PutResult, 8)
		errs := make(chan error, 8)
		for i := range 8 {
			go func() {
				res, err := w.peer(i).put(fmt.Sprint(i), key("k"))
				results <- res
				errs <- err
			}()
		}
		fresh, ids := 0, map[int64]bool{}
		for range 8 {
			w.ok(<-errs)
			res := <-results
			ids[res.ID] = true
			if !res.Duplicate {
				fresh++
			}
		}
		w.equal("new ones", 1, fresh)
		w.equal("ids", 1, len(ids))
		w.counts(queue.Stats{Ready: 1})
	}},
	{name: "Rule05_TheKeyIsFreeAfterAPurge", run: func(t *testing.T, w *world) {
		id := keyedInState(&w.lane, queue.Acked, key("k"))
		n, err := w.purge(0, false)
		w.ok(err)
		w.equal("purged", 1, n)
		w.equal("a new job", true, w.mustPut("x", key("k")) > id)
	}},
}
