package queue_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// The rules that answers and file must keep together. Each violation is told with the answers it rests on.

type historyFindings []string

func (f *historyFindings) add(format string, args ...any) {
	*f = append(*f, fmt.Sprintf(format, args...))
}

func (h *history) violations() []string {
	f := historyFindings(slices.Clone(h.file))
	h.checkAnswers(&f)
	ids := slices.Sorted(maps.Keys(h.jobs))
	for _, id := range ids {
		j := h.jobs[id]
		j.checkPut(&f)
		j.checkDeliveries(&f, h.ends)
		j.checkEnd(&f)
		if h.clockSteady {
			j.checkLeases(&f)
			j.checkOrder(&f)
		}
	}
	if h.clockSteady {
		h.checkClock(&f, ids)
	}
	h.checkKeys(&f)
	return f
}

// checkAnswers: only the errors that the calls are for, and only about jobs that are there.
func (h *history) checkAnswers(f *historyFindings) {
	for _, e := range h.events {
		ok := e.Error == ""
		switch e.Op {
		case "cancel":
			ok = ok || e.Error == "ErrNotFound" || e.Error == "ErrFinished"
		case "put", "claim":
		default:
			ok = ok || strings.HasPrefix(e.Error, "ErrLeaseLost")
		}
		if !ok {
			f.add("an answer that the call isn't for: %v", e)
		}
		if j := h.jobs[e.ID]; e.Error == "" && (j == nil || j.Queue != e.Queue) {
			f.add("the job isn't in queue %s of the file: %v", e.Queue, e)
		}
	}
}

// checkPut: every row was put, as it was put.
func (j *historyJob) checkPut(f *historyFindings) {
	if j.put == nil {
		f.add("job %d is in the file, but no put was given its id", j.ID)
		return
	}
	if string(j.Payload) != j.put.Payload || j.JobID != j.put.Key {
		f.add("job %d has payload %q and key %q: %v put %q and %q", j.ID, j.Payload, j.JobID, *j.put, j.put.Payload, j.put.Key)
	}
	for _, d := range j.repeats {
		if d.Key != j.JobID || d.End < j.put.Begin {
			f.add("%v with key %q was told of job %d with key %q, put by %v", d, d.Key, j.ID, j.JobID, *j.put)
		}
	}
}

// ways are the ends of a delivery that its receiver was told of.
func (j *historyJob) ways(n int64) (ended []historyEvent) {
	for _, e := range j.settles[n] {
		if e.Error == "" && e.Op != "extend" {
			ended = append(ended, e)
		}
	}
	return ended
}

// checkDeliveries: the numbers are 1, 2, 3, ... each given to one claim, and each delivery has exactly one end. A claim
// whose caller had left before the answer was given back by the engine.
func (j *historyJob) checkDeliveries(f *historyFindings, ends map[string]int) {
	for n := int64(1); n <= j.Delivery; n++ {
		if len(j.claims[n]) > 1 {
			f.add("delivery %d of job %d was given to %d claims: %v", n, j.ID, len(j.claims[n]), j.claims[n])
		}
		var found []string
		for _, e := range j.ways(n) {
			found = append(found, e.Op)
		}
		d := j.story[n]
		if d.Outcome == "lease_expired" || d.Outcome == "cancelled" {
			found = append(found, d.Outcome)
		}
		if j.State == queue.Leased && j.Delivery == n {
			found = append(found, "still leased")
		}
		if len(found) == 0 && len(j.claims[n]) == 0 {
			ends["given back"]++ // nobody was told of it, and it has used no attempt (see checkEnd)
			continue
		}
		if len(found) != 1 || len(j.claims[n]) == 0 {
			f.add("delivery %d of job %d should have one claim and one end, and has the ends %v: claims %v, settles %v, kept in the file as %q", n, j.ID, found, j.claims[n], j.settles[n], d.Outcome)
			continue
		}
		ends[found[0]]++
		if kept := map[string]string{"nack": "nacked", "fail": "failed", "lease_expired": "lease_expired", "cancelled": "cancelled"}[found[0]]; kept != d.Outcome {
			f.add("delivery %d of job %d ended by %s; the file keeps %q of it", n, j.ID, found[0], d.Outcome)
		}
	}
	for n, claims := range j.claims {
		if n > j.Delivery {
			f.add("job %d is at delivery %d, but %v", j.ID, j.Delivery, claims)
		}
	}
}

// checkEnd: where the job stands follows from how its last delivery ended, and its attempts from its claims.
func (j *historyJob) checkEnd(f *historyFindings) {
	released := 0
	last := ""
	for n := int64(1); n <= j.Delivery; n++ {
		last = ""
		if len(j.claims[n]) == 0 {
			released++
		}
		for _, e := range j.ways(n) {
			last = e.Op
			if e.Op == "release" {
				released++
			}
			if (e.Op == "ack" || e.Op == "fail") && n != j.Delivery {
				f.add("job %d was delivered again (it is at delivery %d) after %v", j.ID, j.Delivery, e)
			}
		}
		if j.story[n].Outcome == "lease_expired" {
			last = "lease_expired"
		}
	}
	if want := int(j.Delivery) - released; j.Attempts != want {
		f.add("job %d has %d attempts after %d deliveries, %d of them released", j.ID, j.Attempts, j.Delivery, released)
	}
	type end struct {
		state  queue.State
		reason queue.Reason
	}
	ends := map[string]end{"ack": {queue.Acked, ""}, "fail": {queue.Failed, queue.Permanent}}
	if j.Attempts >= j.MaxAttempts {
		ends["nack"], ends["lease_expired"] = end{queue.Failed, queue.RetriesExhausted}, end{queue.Failed, queue.LeaseExpired}
	}
	want, finished := ends[last]
	switch {
	case len(j.cancels) > 1 || len(j.cancels) == 1 != (j.Reason == queue.Cancelled):
		f.add("job %d is %s with reason %q after cancels %v", j.ID, j.State, j.Reason, j.cancels)
	case len(j.cancels) == 1 && (last == "ack" || last == "fail"):
		f.add("job %d was cancelled after it had ended by %s: %v", j.ID, last, j.cancels)
	case len(j.cancels) == 0 && finished && (end{j.State, j.Reason} != want):
		f.add("job %d is %s with reason %q after its last delivery ended by %s", j.ID, j.State, j.Reason, last)
	case len(j.cancels) == 0 && !finished && (j.State == queue.Acked || j.State == queue.Failed):
		f.add("job %d is %s with reason %q, and nothing has finished it: its last delivery ended by %q", j.ID, j.State, j.Reason, last)
	}
}

// checkLeases: a lease is as long as asked for, holds until its end, and not after it.
func (j *historyJob) checkLeases(f *historyFindings) {
	for n, claims := range j.claims {
		c := claims[0]
		if c.Until < c.Begin/1000+c.Lease || c.Until > c.End/1000+c.Lease {
			f.add("a lease of %d ms ends at %d ms: %v", c.Lease, c.Until, c)
		}
		until, over := c.Until, ""
		for _, e := range j.settles[n] {
			switch {
			case e.Error == "" && e.Begin/1000 >= until:
				f.add("the lease ended at %d ms, and later it was still good for %v", until, e)
			case e.Error != "" && e.End/1000 < until && over == "" && len(j.cancels) == 0:
				f.add("the lease lasts until %d ms, but %v", until, e)
			case e.Error == "" && e.Op == "extend":
				until = e.Until
			}
			if e.Error == "" && e.Op != "extend" {
				over = e.Op
			}
		}
		if d := j.story[n]; d.Outcome == "lease_expired" && d.End.UnixMilli() != until {
			f.add("delivery %d of job %d had its lease until %d ms, but was ended with that of %d ms", n, j.ID, until, d.End.UnixMilli())
		}
	}
}

// checkOrder: a delivery begins after the one before it has ended.
func (j *historyJob) checkOrder(f *historyFindings) {
	for n := int64(2); n <= j.Delivery; n++ {
		if len(j.claims[n]) != 1 || len(j.claims[n-1]) != 1 {
			continue // told already
		}
		c := j.claims[n][0]
		for _, e := range j.ways(n - 1) {
			if e.Begin > c.End {
				f.add("two receivers held job %d at once: %v, then %v", j.ID, c, e)
			}
		}
		// As the file has it: the claim's time is read under the lock, after the commit that ended the delivery before.
		began := c.Until - c.Lease
		if d, ok := j.story[n-1]; ok && d.End.UnixMilli() > began {
			f.add("delivery %d of job %d began at %d ms, before delivery %d ended at %d ms (%s): %v", n, j.ID, began, n-1, d.End.UnixMilli(), d.Outcome, c)
		}
	}
	if c := j.claims[1]; len(c) == 1 && c[0].Until-c[0].Lease < j.CreatedAt.UnixMilli() {
		f.add("job %d was claimed at %d ms, before it was put at %d ms: %v", j.ID, c[0].Until-c[0].Lease, j.CreatedAt.UnixMilli(), c[0])
	}
}

// checkClock: ids are given in the order of the commits, so times that are read under the lock rise with them. A time read
// before the wait for the lock doesn't.
func (h *history) checkClock(f *historyFindings, ids []int64) {
	var before time.Time
	for _, id := range ids {
		j := h.jobs[id]
		if j.CreatedAt.Before(before) {
			f.add("job %d was put at %v, before the job with the id before it (%v)", id, j.CreatedAt, before)
		}
		before = j.CreatedAt
	}
}

// checkKeys: a key that is held while the row exists stands on one row.
func (h *history) checkKeys(f *historyFindings) {
	type key struct{ queue, id string }
	held := map[key]int64{}
	for _, id := range slices.Sorted(maps.Keys(h.jobs)) {
		j := h.jobs[id]
		if k := (key{j.Queue, j.JobID}); j.JobID != "" && held[k] != 0 {
			f.add("jobs %d and %d have the same key %q", held[k], id, j.JobID)
		} else if j.JobID != "" {
			held[k] = id
		}
	}
}
