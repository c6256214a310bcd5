package queue_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/localqueue/localqueue/queue"
)

// modelPut is one job to put.
type modelPut struct {
	payload  []byte
	key      string
	pending  bool
	delay    time.Duration
	at       time.Time // zero: not given
	priority int16
	retries  int // -1: the queue's default
	headers  map[string]string
}

// upToMillis: a delay or a lease is never shorter than asked for.
func upToMillis(d time.Duration) time.Duration {
	if whole := d.Truncate(time.Millisecond); whole < d {
		return whole + time.Millisecond
	}
	return d
}

// put is told what the engine answered, for the id of a new job: any that is higher than all before.
func (o modelOp) put(p modelPut, got queue.PutResult) (queue.PutResult, string) {
	if h := o.m.holder(o.q.name, p.key); p.key != "" && h != nil {
		return queue.PutResult{ID: h.ID, Duplicate: true}, ""
	}
	if o.q.limit > 0 && o.m.pending(o.q.name) >= o.q.limit {
		return queue.PutResult{}, "ErrFull"
	}
	j := &modelJob{Record: queue.Record{
		ID: max(got.ID, o.m.last+1), Queue: o.q.name, State: queue.Ready, JobID: p.key, Pending: p.pending, Payload: p.payload, Headers: p.headers,
		Priority: p.priority, MaxAttempts: o.q.retries + 1, AvailableAt: o.now.Add(upToMillis(p.delay)), CreatedAt: o.now, UpdatedAt: o.now,
	}}
	if p.retries >= 0 {
		j.MaxAttempts = p.retries + 1
	}
	if p.at.After(o.now) {
		j.AvailableAt = p.at
	}
	if j.AvailableAt.After(o.now) {
		j.State = queue.Delayed
	}
	o.m.jobs[j.ID], o.m.last = j, j.ID
	return queue.PutResult{ID: j.ID}, ""
}

// fresh counts the jobs of a batch that no key stands for.
func (o modelOp) fresh(batch []modelPut) int {
	n, seen := 0, map[string]bool{}
	for _, p := range batch {
		if p.key == "" || !seen[p.key] && o.m.holder(o.q.name, p.key) == nil {
			n++
		}
		seen[p.key] = true
	}
	return n
}

func (o modelOp) fits(batch []modelPut) bool {
	n := o.fresh(batch)
	return o.q.limit == 0 || n == 0 || o.m.pending(o.q.name)+n <= o.q.limit
}

func (o modelOp) putMany(batch []modelPut, got []queue.PutResult) ([]queue.PutResult, string) {
	if !o.fits(batch) {
		return nil, "ErrFull"
	}
	var results []queue.PutResult
	for i, p := range batch {
		var answered queue.PutResult
		if i < len(got) {
			answered = got[i]
		}
		r, _ := o.put(p, answered)
		results = append(results, r)
	}
	return results, ""
}

// promote lets the delayed jobs that are due be claimed.
func (o modelOp) promote() {
	for _, j := range o.m.byID(o.q.name, queue.Delayed) {
		if !j.AvailableAt.After(o.now) {
			j.State = queue.Ready
		}
	}
}

// reclaim ends the leases whose time has passed.
func (o modelOp) reclaim() (sum queue.Reclaimed) {
	for _, j := range o.m.byID(o.q.name, queue.Leased) {
		if j.LeaseUntil.After(o.now) {
			continue
		}
		j.tell("lease_expired", j.LeaseUntil, nil)
		if j.leave(o.now, queue.LossExpired); j.Attempts >= j.MaxAttempts {
			j.State, j.Reason = queue.Failed, queue.LeaseExpired
			sum.Failed++
		} else {
			sum.Returned++
		}
		j.AvailableAt = o.now
	}
	return sum
}

// leave ends a delivery; the job is ready unless the caller says otherwise.
func (j *modelJob) leave(now time.Time, end queue.LossCause) {
	j.State, j.Receipt, j.LeaseUntil, j.UpdatedAt, j.end = queue.Ready, "", time.Time{}, now, end
}

// tell keeps a failed delivery in the job's history.
func (j *modelJob) tell(outcome string, end time.Time, text *string) {
	if end.Before(j.ClaimedAt) { // the clock stepped back
		end = j.ClaimedAt
	}
	d := queue.Delivery{Number: j.Delivery, Attempt: j.Attempts, Start: j.ClaimedAt, End: end, Outcome: outcome, Worker: j.ClaimedBy}
	if text != nil {
		d.Error = *text
	}
	j.story = append(j.story, d)
	j.story = slices.Clone(j.story[max(0, len(j.story)-20):])
	j.touched = true
}

var receiptForm = regexp.MustCompile(`^([1-9][0-9]*)-[0-9a-f]{32}$`)

// claim is told what the engine answered, for the receipts: any that are new and have the delivery's number.
func (o modelOp) claim(n int, got []*queue.Job) (want []*queue.Job, kind string) {
	o.reclaim()
	if o.q.paused {
		return nil, "ErrEmpty"
	}
	o.promote()
	ready := o.m.list(o.q.name, queue.Ready)
	if len(ready) == 0 {
		return nil, "ErrEmpty"
	}
	for i, j := range ready[:min(n, len(ready))] {
		j.State, j.Attempts, j.Delivery = queue.Leased, j.Attempts+1, j.Delivery+1
		j.ClaimedAt, j.ClaimedBy, j.UpdatedAt, j.LeaseUntil = o.now, o.who, o.now, o.now.Add(upToMillis(o.q.lease))
		j.Receipt = fmt.Sprintf("%d-<32 new hex digits>", j.Delivery)
		if i < len(got) {
			if form := receiptForm.FindStringSubmatch(got[i].Receipt); form != nil && form[1] == strconv.FormatInt(j.Delivery, 10) && !o.m.receipts[got[i].Receipt] {
				j.Receipt = got[i].Receipt
			}
		}
		o.m.receipts[j.Receipt] = true
		want = append(want, &queue.Job{
			ID: j.ID, Queue: j.Queue, JobID: j.JobID, Payload: j.Payload, Headers: j.Headers, Priority: j.Priority, Attempt: j.Attempts, MaxAttempts: j.MaxAttempts,
			Delivery: j.Delivery, Receipt: j.Receipt, EnqueuedAt: j.CreatedAt, LeaseUntil: j.LeaseUntil, LastError: j.LastError,
		})
	}
	return want, ""
}

// held finds the job that a receipt holds, or says why there is none.
func (o modelOp) held(r queue.Ref) (*modelJob, string) {
	j, lost := o.m.jobs[r.ID], func(c queue.LossCause) (*modelJob, string) { return nil, modelLost(o.q.name, r.ID, c) }
	if j == nil && r.ID >= 1 && r.ID <= o.m.last {
		return lost(queue.LossGone)
	}
	if j == nil || j.Queue != o.q.name {
		return lost(queue.LossNoSuchJob)
	}
	if j.State == queue.Leased && j.Receipt == r.Receipt {
		if j.LeaseUntil.After(o.now) {
			return j, ""
		}
		return lost(queue.LossExpired)
	}
	number := int64(0)
	if form := receiptForm.FindStringSubmatch(r.Receipt); form != nil {
		number, _ = strconv.ParseInt(form[1], 10, 64)
	}
	switch {
	case number == 0 || number > j.Delivery || number == j.Delivery && j.State == queue.Leased:
		return lost(queue.LossForeign)
	case number < j.Delivery:
		return lost(queue.LossSuperseded)
	}
	return lost(j.end)
}

func (o modelOp) ack(r queue.Ref) string {
	j, lost := o.held(r)
	if j == nil {
		return lost
	}
	j.leave(o.now, queue.LossSettled)
	if j.State = queue.Acked; o.q.keep != nil && *o.q.keep == 0 {
		delete(o.m.jobs, j.ID)
	}
	return ""
}

// modelErrorText is what is kept of an error: UTF-8, 8 KiB at most, whole runes.
func modelErrorText(cause error) *string {
	if cause == nil {
		return nil
	}
	var kept strings.Builder
	for _, r := range strings.ToValidUTF8(cause.Error(), "\uFFFD") {
		if kept.Len()+utf8.RuneLen(r) > 8<<10 {
			break
		}
		kept.WriteRune(r)
	}
	text := kept.String()
	return &text
}

func (j *modelJob) say(text *string) {
	if text != nil {
		j.LastError = *text
	}
}

func (o modelOp) nack(r queue.Ref, cause error, delay time.Duration, panicked bool) string {
	j, lost := o.held(r)
	if j == nil {
		return lost
	}
	outcome, reason, text := "nacked", queue.RetriesExhausted, modelErrorText(cause)
	if panicked {
		outcome, reason = "panic", queue.Panicked
	}
	j.tell(outcome, o.now, text)
	j.say(text)
	j.leave(o.now, queue.LossSettled)
	if j.AvailableAt = o.now; j.Attempts >= j.MaxAttempts {
		j.State, j.Reason = queue.Failed, reason
	} else {
		j.hold(o.now, delay)
	}
	return ""
}

// hold makes a job due after a while.
func (j *modelJob) hold(now time.Time, delay time.Duration) {
	if j.AvailableAt = now.Add(upToMillis(delay)); delay > 0 {
		j.State = queue.Delayed
	}
}

func (o modelOp) fail(r queue.Ref, cause error, reason queue.Reason) string {
	j, lost := o.held(r)
	if j == nil {
		return lost
	}
	outcome, text := "failed", modelErrorText(cause)
	if reason == queue.Panicked {
		outcome = "panic"
	}
	j.tell(outcome, o.now, text)
	j.say(text)
	j.leave(o.now, queue.LossSettled)
	j.State, j.Reason = queue.Failed, reason
	return ""
}

func (o modelOp) release(r queue.Ref, delay time.Duration) string {
	j, lost := o.held(r)
	if j == nil {
		return lost
	}
	j.leave(o.now, queue.LossSettled)
	j.Attempts--
	j.hold(o.now, delay)
	return ""
}

func (o modelOp) extend(r queue.Ref, d time.Duration) (time.Time, string) {
	j, lost := o.held(r)
	if j == nil {
		return time.Time{}, lost
	}
	j.LeaseUntil = o.now.Add(upToMillis(d))
	return j.LeaseUntil, ""
}

// beat never shortens a lease.
func (o modelOp) beat(r queue.Ref, d time.Duration) (time.Time, string) {
	j, lost := o.held(r)
	if j == nil {
		return time.Time{}, lost
	}
	if until := o.now.Add(upToMillis(d)); until.After(j.LeaseUntil) {
		j.LeaseUntil = until
	}
	return j.LeaseUntil, ""
}
