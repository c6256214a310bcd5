package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var deadCases = []conformanceCase{
	{name: "Rule26_TheReasonSaysWhyAJobIsDead", run: func(t *testing.T, w *world) {
		last := func(settle func(j *queue.Job)) func() int64 {
			return func() int64 {
				id := w.mustPut("x", deliveries(1))
				settle(w.mustGet())
				return id
			}
		}
		for want, kill := range map[queue.Reason]func() int64{
			queue.RetriesExhausted: last(func(j *queue.Job) { w.ok(w.nack(j, errBoom)) }),
			queue.LeaseExpired:     last(func(*queue.Job) { w.advance(queue.DefaultLease); w.ok(second(w.reclaim())) }),
			queue.Permanent:        last(func(j *queue.Job) { w.ok(w.fail(j, errBoom)) }),
			queue.InvalidPayload:   last(func(j *queue.Job) { w.ok(w.fail(j, errBoom, as(queue.InvalidPayload))) }),
			queue.Panicked:         last(func(j *queue.Job) { w.ok(w.nack(j, errBoom, as(queue.Panicked))) }),
			queue.Cancelled:        last(func(j *queue.Job) { w.ok(w.cancel(j.ID)) }),
		} {
			rec := w.mustShow(kill())
			w.equal("state and reason", []any{queue.Failed, want}, []any{rec.State, rec.Reason})
		}
		id := w.mustPut("x", deliveries(5))
		w.ok(w.fail(w.mustGet(), errBoom, as(queue.Panicked)))
		w.equal("a fail as a panic", []any{queue.Panicked, "panic"}, []any{w.mustShow(id).Reason, w.entries(id, 1)[0].Outcome})
		id = w.mustPut("x", deliveries(2))
		w.ok(w.nack(w.mustGet(), errBoom, as(queue.Panicked)))
		w.equal("not the last delivery", queue.Reason(""), w.mustShow(id).Reason)
	}},
	{name: "Rule26_AReasonOfAnotherProgramIsUnknown", run: func(t *testing.T, w *world) {
		for text, want := range map[string]queue.Reason{"'something'": queue.UnknownReason, "NULL": queue.UnknownReason, "''": queue.UnknownReason,
			"'permanent_handler_error'": queue.Permanent, "'explicit_permanent_failure'": queue.Permanent, "'lease_expired'": queue.LeaseExpired} {
			id := w.mustPut("x")
			w.ok(w.cancel(id))
			w.raw("UPDATE messages SET reason = "+text+" WHERE id = ?", id)
			w.equal("reason "+text, want, w.mustShow(id).Reason)
		}
	}},
	{name: "Rule26_ListFailedPagesByIdAndOneBadRecordHidesNoOther", run: func(t *testing.T, w *world) {
		var want []int64
		for i := range 5 {
			id := w.mustPut(fmt.Sprintf("\xff%d", i), header("k", "v"))
			want = append(want, id)
		}
		for i := range want { // die in another order than that of the ids
			w.ok(w.cancel(want[(i+3)%len(want)]))
			w.advance(time.Second)
		}
		w.raw("UPDATE messages SET headers = '{not json', reason = 'odd', priority = 1000000 WHERE id = ?", want[2])
		var got []int64
		for after := ""; ; {
			page, err := w.listFailed(queue.ListOptions{Limit: 2, After: after})
			w.ok(err)
			for _, r := range page.Records {
				got = append(got, r.ID)
				w.equal("bytes", fmt.Sprintf("\xff%d", slices.Index(want, r.ID)), string(r.Payload))
			}
			if after = page.Next; after == "" {
				break
			}
		}
		w.equal("ids", want, got)
		w.equal("all", want, w.ids(queue.Failed))
		rec := w.mustShow(want[2])
		w.equal("the bad one", []any{map[string]string(nil), queue.UnknownReason, int16(32767)}, []any{rec.Headers, rec.Reason, rec.Priority})
	}},
}

var retryCases = []conformanceCase{
	{name: "Rule27_ARetryMakesTheJobNewAndKeepsItsPast", run: func(t *testing.T, w *world) {
		id := w.mustPut("p", key("k"), header("h", "v"), priority(2), deliveries(2))
		for range 2 {
			w.advance(time.Second)
			w.ok(w.nack(w.mustGet(), errBoom))
		}
		story := w.history(id)
		before := w.mustShow(id)
		w.advance(time.Second)
		w.ok(w.retry(id))
		want := *before
		want.State, want.Attempts, want.Reason, want.LastError, want.AvailableAt, want.UpdatedAt = queue.Ready, 0, "", "", w.now(), w.now()
		w.equal("the job", &want, w.mustShow(id))
		w.equal("history", story, w.history(id))
		j := w.mustGet()
		w.equal("the next delivery", []any{1, int64(3), ""}, []any{j.Attempt, j.Delivery, j.LastError})
		w.ok(w.nack(j, errBoom))
		w.ok(w.nack(w.mustGet(), errBoom))
		w.equal("both rounds", 4, len(w.history(id)))
		w.equal("dead again", queue.RetriesExhausted, w.mustShow(id).Reason)
	}},
	{name: "Rule27_OnlyAFailedJobIsRetried", run: func(t *testing.T, w *world) {
		for _, s := range []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked} {
			q := w.on(string(s))
			id := inState(q, s).Ref().ID
			err := q.retry(id)
			w.is(err, queue.ErrNotFailed)
			w.says(err, string(s))
			w.equal("state", s, q.mustShow(id).State)
		}
		w.is(w.retry(1<<40), queue.ErrNotFound)
	}},
	{name: "Rule27_OfManyRetriesOneWins", run: func(t *testing.T, w *world) {
		id := inState(&w.lane, queue.Failed).Ref().ID
		var tries []*pending[int]
		for i := range 6 {
			tries = append(tries, inBackground(func() (int, error) { return 0, w.peer(i).retry(id) }))
		}
		won := 0
		for _, p := range tries {
			if _, err := p.await(t); err == nil {
				won++
			} else {
				w.is(err, queue.ErrNotFailed)
			}
		}
		w.equal("won", 1, won)
		w.counts(queue.Stats{Ready: 1})
	}},
	{name: "Rule27_AKeyHeldByALiveJobRefusesTheRetryAndNamesIt", run: func(t *testing.T, w *world) {
		dead := keyedInState(&w.lane, queue.Failed, key("k"), whilePending())
		holder := w.mustPut("x", key("k"), whilePending())
		err := w.retry(dead)
		w.is(err, queue.ErrDuplicate)
		var dup *queue.DuplicateError
		if !errors.As(err, &dup) {
			t.Fatalf("%v is no DuplicateError", err)
		}
		w.equal("what it names", queue.DuplicateError{Queue: "jobs", ID: dead, JobID: "k", Holder: holder}, *dup)
		w.equal("the job stays", queue.Failed, w.mustShow(dead).State)
		w.ok(w.ack(w.mustGet()))
		w.ok(w.retry(dead))
		w.equal("now it is ready", queue.Ready, w.mustShow(dead).State)
	}},
	{name: "Rule27_AKeptKeyIsNoHindranceToItsOwnRetry", run: func(t *testing.T, w *world) {
		dead := keyedInState(&w.lane, queue.Failed, key("k"))
		w.ok(w.retry(dead))
		res, err := w.put("y", key("k"))
		w.ok(err)
		w.equal("still held", queue.PutResult{ID: dead, Duplicate: true}, res)
	}},
	{name: "Rule27_RetryInBulkGoesByItsFilter", run: func(t *testing.T, w *world) {
		var ids []int64
		for i, text := range []string{"timeout: a", "Timeout: b", "refused", "timeout: c", ""} {
			ids = append(ids, w.mustPut(fmt.Sprint(i)))
			var cause error
			if text != "" {
				cause = textError(text)
			}
			w.ok(w.fail(w.mustGet(), cause))
			w.advance(time.Second)
		}
		w.mustPut("not dead")
		report := func(f queue.RetryFilter, want queue.RetryReport) {
			t.Helper()
			got, err := w.retryMany(f)
			w.ok(err)
			w.equal(fmt.Sprintf("%+v", f), want, got)
		}
		report(queue.RetryFilter{DryRun: true}, queue.RetryReport{Matched: 5})
		report(queue.RetryFilter{DryRun: true, Limit: 2}, queue.RetryReport{Matched: 2})
		report(queue.RetryFilter{DryRun: true, ErrorContains: "timeout"}, queue.RetryReport{Matched: 2})
		report(queue.RetryFilter{DryRun: true, OlderThan: 4 * time.Second}, queue.RetryReport{Matched: 2})
		report(queue.RetryFilter{DryRun: true, OlderThan: 5*time.Second + time.Millisecond}, queue.RetryReport{})
		report(queue.RetryFilter{ErrorContains: "nothing says so"}, queue.RetryReport{})
		w.counts(queue.Stats{Ready: 1, Failed: 5})
		report(queue.RetryFilter{ErrorContains: "timeout", Limit: 1}, queue.RetryReport{Matched: 1, Retried: 1})
		w.equal("the lowest id", queue.Ready, w.mustShow(ids[0]).State)
		report(queue.RetryFilter{ErrorContains: "timeout"}, queue.RetryReport{Matched: 1, Retried: 1})
		report(queue.RetryFilter{}, queue.RetryReport{Matched: 3, Retried: 3})
		report(queue.RetryFilter{}, queue.RetryReport{})
		w.equal("order", []string{"0", "1", "2", "3", "4", "not dead"}, w.drain())
		for _, f := range []queue.RetryFilter{{OlderThan: -1}, {Limit: -1}} {
			w.is(second(w.retryMany(f)), queue.ErrInvalid)
		}
	}},
	{name: "Rule27_ABulkRetryCountsConflictsAndGoesOn", run: func(t *testing.T, w *world) {
		var dead []int64
		for range 3 { // three dead under one key, of which only one can live
			dead = append(dead, keyedInState(&w.lane, queue.Failed, key("k"), whilePending()))
		}
		free := keyedInState(&w.lane, queue.Failed, key("free"))
		got, err := w.retryMany(queue.RetryFilter{})
		w.ok(err)
		w.equal("report", queue.RetryReport{Matched: 4, Retried: 2, Conflicts: 2}, got)
		w.equal("the lowest wins", queue.Ready, w.mustShow(dead[0]).State)
		w.equal("the free one", queue.Ready, w.mustShow(free).State)
		w.counts(queue.Stats{Ready: 2, Failed: 2})
	}},
	{name: "Rule27_ABulkRetryGoesOnOverManySteps", run: func(t *testing.T, w *world) {
		const n = 2100
		jobs := make([]jobSpec, n)
		for i := range jobs {
			jobs[i] = spec("x")
		}
		w.ok(second(w.putMany(jobs...)))
		w.raw("UPDATE messages SET status = 3, reason = 'permanent', updated_at = ? WHERE queue = 'jobs'", w.now().UnixMilli())
		got, err := w.retryMany(queue.RetryFilter{Limit: 1500})
		w.ok(err)
		w.equal("with a limit", queue.RetryReport{Matched: 1500, Retried: 1500}, got)
		got, err = w.retryMany(queue.RetryFilter{})
		w.ok(err)
		w.equal("the rest", queue.RetryReport{Matched: n - 1500, Retried: n - 1500}, got)
		w.counts(queue.Stats{Ready: n})
	}},
}
