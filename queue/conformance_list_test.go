package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// pages walks through a list with pages of a size.
func (l *lane) pages(state queue.State, size int) (payloads []string) {
	l.w.t.Helper()
	for after := ""; ; {
		page, err := l.list(state, queue.ListOptions{Limit: size, After: after})
		l.w.ok(err)
		if len(page.Records) > size || len(page.Records) < size && page.Next != "" {
			l.w.t.Fatalf("a page of %d records of %d, next %q", len(page.Records), size, page.Next)
		}
		for _, r := range page.Records {
			l.w.equal("state", state, r.State)
			payloads = append(payloads, string(r.Payload))
		}
		if after = page.Next; after == "" {
			return payloads
		}
	}
}

// mixed makes jobs of every state, five each, in an order that is neither that of the ids nor its reverse.
func mixed(w *world) map[queue.State][]string {
	w.t.Helper()
	for i, p := range []int16{1, 3, 1, 2, 3} {
		w.mustPut(fmt.Sprintf("ready %d %d", p, i), priority(p))
	}
	for i, s := range []int{3, 1, 2, 5, 1} {
		w.mustPut(fmt.Sprintf("delayed %d %d", s, i), delayed(time.Duration(s)*time.Hour))
	}
	for i, s := range []int{3, 1, 2, 5, 1} {
		w.mustPut(fmt.Sprintf("leased %d %d", s, i), priority(10))
		w.options(lease(time.Duration(s) * time.Hour)).mustGet()
	}
	var acked, dead []*queue.Job
	for i := range 5 {
		w.mustPut(fmt.Sprintf("acked %d", i), priority(10))
		acked = append(acked, w.mustGet())
		w.mustPut(fmt.Sprintf("failed %d", i), priority(10))
		dead = append(dead, w.mustGet())
	}
	for i := range 5 {
		w.ok(w.ack(acked[(i*3)%5]))
		w.ok(w.fail(dead[(i*3)%5], errBoom))
		w.advance(time.Second)
	}
	return map[queue.State][]string{
		queue.Ready:   {"ready 3 1", "ready 3 4", "ready 2 3", "ready 1 0", "ready 1 2"},
		queue.Delayed: {"delayed 1 1", "delayed 1 4", "delayed 2 2", "delayed 3 0", "delayed 5 3"},
		queue.Leased:  {"leased 1 1", "leased 1 4", "leased 2 2", "leased 3 0", "leased 5 3"},
		queue.Acked:   {"acked 0", "acked 3", "acked 1", "acked 4", "acked 2"},
		queue.Failed:  {"failed 0", "failed 1", "failed 2", "failed 3", "failed 4"},
	}
}

var listCases = []conformanceCase{
	{name: "Rule29_EachStateIsListedInItsOwnOrder", run: func(t *testing.T, w *world) {
		for state, want := range mixed(w) {
			for _, size := range []int{1, 2, 3, 5, 6} {
				w.equal(fmt.Sprintf("%s in pages of %d", state, size), want, w.pages(state, size))
			}
			records, err := w.all(state)
			w.ok(err)
			w.equal("all", len(want), len(records))
		}
	}},
	{name: "Rule29_ACursorIsOfItsOwnListOnly", run: func(t *testing.T, w *world) {
		mixed(w)
		other := w.on("other")
		other.mustPut("x")
		for _, s := range allStates {
			page, err := w.list(s, queue.ListOptions{Limit: 2})
			w.ok(err)
			for _, elsewhere := range allStates {
				_, err := w.list(elsewhere, queue.ListOptions{After: page.Next})
				if s == elsewhere {
					w.ok(err)
				} else {
					w.is(err, queue.ErrInvalid)
				}
			}
			w.is(second(other.list(s, queue.ListOptions{After: page.Next})), queue.ErrInvalid)
		}
		for _, bad := range []string{"x", "!!!", "e30", "AAAA", " ", "1", repeat("A", 10000), "\xff"} {
			w.is(second(w.list(queue.Ready, queue.ListOptions{After: bad})), queue.ErrInvalid)
		}
	}},
	{name: "Rule29_LimitsAreFrom1To1000And100ByDefault", run: func(t *testing.T, w *world) {
		jobs := make([]jobSpec, 1001)
		for i := range jobs {
			jobs[i] = spec("x")
		}
		w.ok(second(w.putMany(jobs...)))
		for limit, want := range map[int]int{0: 100, 1: 1, 1000: 1000} {
			page, err := w.list(queue.Ready, queue.ListOptions{Limit: limit})
			w.ok(err)
			w.equal("records", want, len(page.Records))
		}
		for _, limit := range []int{-1, 1001} {
			w.is(second(w.list(queue.Ready, queue.ListOptions{Limit: limit})), queue.ErrInvalid)
		}
		w.equal("all", 1001, len(w.ids(queue.Ready)))
		for _, s := range []queue.State{"", "dead", "READY"} {
			w.is(second(w.list(s, queue.ListOptions{})), queue.ErrInvalid)
			w.is(second(w.all(s)), queue.ErrInvalid)
		}
	}},
	{name: "Rule29_AnEmptyListIsAPageWithoutANext", run: func(t *testing.T, w *world) {
		for _, s := range allStates {
			page, err := w.list(s, queue.ListOptions{})
			w.ok(err)
			w.equal("page", queue.Page{}, page)
		}
	}},
	{name: "Rule29_APageGoesOnAfterItsLastJobHasLeft", run: func(t *testing.T, w *world) {
		for i := range 5 {
			w.mustPut(fmt.Sprint(i))
		}
		page, err := w.list(queue.Ready, queue.ListOptions{Limit: 2})
		w.ok(err)
		w.ok(w.delete(page.Records[1].ID))
		w.ok(w.delete(page.Records[1].ID + 1))
		page, err = w.list(queue.Ready, queue.ListOptions{After: page.Next})
		w.ok(err)
		w.equal("what is left", []string{"3", "4"}, []string{string(page.Records[0].Payload), string(page.Records[1].Payload)})
	}},
	{name: "Rule29_ADueJobIsListedAsReadyOrDelayedButNeverLost", run: func(t *testing.T, w *world) {
		w.mustPut("x", delayed(time.Second))
		w.advance(time.Second)
		w.equal("listed", 1, len(w.ids(queue.Ready))+len(w.ids(queue.Delayed)))
	}},
}

var peekCases = []conformanceCase{
	{name: "Rule29_PeekShowsWhatTheNextClaimTakes", run: func(t *testing.T, w *world) {
		w.is(second(w.peek()), queue.ErrEmpty)
		agree := func(what string) *queue.Job {
			t.Helper()
			before := w.recount()
			rec, err := w.peek()
			w.ok(err)
			w.equal("no change", before, w.recount())
			j := w.mustGet()
			w.equal(what, []any{j.ID, string(j.Payload)}, []any{rec.ID, string(rec.Payload)})
			return j
		}
		w.mustPut("delayed", delayed(time.Second), priority(1))
		w.is(second(w.peek()), queue.ErrEmpty)
		w.mustPut("low", priority(-1))
		w.mustPut("a")
		w.mustPut("b")
		w.equal("a", "a", string(agree("plain").Payload))
		w.advance(time.Second)
		w.equal("delayed", "delayed", string(agree("a due job that isn't promoted").Payload))
		w.advance(queue.DefaultLease)
		w.equal("delayed", "delayed", string(agree("an ended lease that isn't reclaimed").Payload))
		agree("the next")
		agree("the next")
		agree("the last")
		w.is(second(w.peek()), queue.ErrEmpty)
		w.mustPut("last try", deliveries(1), priority(9))
		w.mustGet()
		w.advance(queue.DefaultLease - time.Second)
		w.is(second(w.peek()), queue.ErrEmpty)
		w.advance(time.Second)
		rec, err := w.peek()
		w.ok(err)
		w.equal("not the one that has no delivery left", true, string(rec.Payload) != "last try")
	}},
	{name: "Rule29_PeekLooksAlsoWhilePaused", run: func(t *testing.T, w *world) {
		id := w.mustPut("x")
		w.ok(w.pause())
		rec, err := w.peek()
		w.ok(err)
		w.equal("job", id, rec.ID)
		w.mustBeEmpty()
	}},
}
