package queue

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/localqueue/localqueue/db/sqlite"
)

// importJob is a job that was found possible, as it will be stored.
type importJob struct {
	row     importRow
	payload []byte // kept beside the row; nil if it is in the row
	history []sqlite.ImportDeliveryParams
}

type importRow struct{ sqlite.ImportJobParams }

func (r importRow) size() int {
	return len(r.Payload) + len(deref(r.LastError)) + len(deref(r.Headers))
}

const (
	maxNumber  = 1<<53 - 1 // of an id or a delivery: exact wherever JSON is read, and far from where SQLite's ids end
	maxKeptID  = 1 << 52   // leaves as many to the jobs that come after an import, which can then be exported too
	maxWho     = 1 << 10   // bytes of a worker's name or a receipt
	maxEntries = 21        // of a history that may be kept: a trigger keeps 20, beside one of a delivery without a number
)

// checkOptions finds out before the first job what is wrong with an import.
func (im *Import) checkOptions() error {
	if im.opts.Name == "" {
		return invalid("the import has no name")
	}
	if err := checkText("name of the import", im.opts.Name, maxName); err != nil {
		return err
	}
	if ids := im.opts.IDs; ids.First < 0 || ids.Last < 0 || ids.Last > maxNumber {
		return invalid("ids from %d to %d: must be between 0 and 2^53-1", ids.First, ids.Last)
	}
	if im.opts.Queue != "" {
		if err := checkQueueName(im.opts.Queue); err != nil {
			return err
		}
	}
	for _, s := range im.opts.Settings {
		if err := checkQueueName(s.Queue); err != nil {
			return err
		}
		if k := s.KeepAcked; k != nil && (*k < 0 || *k > maxDelay) {
			return invalid("queue %q keeps acked jobs for %v: must be between 0 and 100 years", s.Queue, *k)
		}
	}
	return nil
}

// prepare fills in what is missing, and refuses what no transition leaves behind: Check must find nothing afterwards.
func (im *Import) prepare(a Archived) (j importJob, err error) {
	now := im.s.Now()
	im.fill(&a, now)
	status, delayed, known := a.State.stored()
	if !known {
		return j, invalid("state %q: use ready, delayed, leased, acked or failed", cutText(string(a.State), 80))
	}
	for _, check := range []func(*Archived) error{im.checkID, im.checkContent, checkTexts, checkState, checkCounts, checkHistory} {
		if err := check(&a); err != nil {
			return j, err
		}
	}
	if err := checkInstants(&a, now); err != nil {
		return j, err
	}
	headers, err := encodeHeaders(a.Headers)
	if err != nil {
		return j, err
	}
	j.row.ImportJobParams = sqlite.ImportJobParams{
		Queue: a.Queue, Payload: notNil(a.Payload), Status: status, Delayed: delayed, Priority: int64(a.Priority), Attempts: int64(a.Attempts),
		MaxAttempts: int64(a.MaxAttempts), Delivery: a.Delivery, KeyScope: asInt(a.Pending), Headers: headers,
		JobID: orNull(a.JobID), Receipt: orNull(a.Receipt), LastError: orNull(a.LastError), ClaimedBy: orNull(a.ClaimedBy), Reason: orNull(string(a.Reason)),
		AvailableAt: a.AvailableAt.UnixMilli(), CreatedAt: a.CreatedAt.UnixMilli(), UpdatedAt: a.UpdatedAt.UnixMilli(),
		LeaseUntil: millisOrNull(a.LeaseUntil), ClaimedAt: millisOrNull(a.ClaimedAt),
	}
	if im.keeps {
		j.row.ID = &a.ID
	}
	if len(a.Payload) > inlineLimit && !im.s.cfg.inline {
		j.row.Payload, j.payload = []byte{}, a.Payload
	}
	for _, d := range a.History[max(0, len(a.History)-maxEntries):] {
		j.history = append(j.history, sqlite.ImportDeliveryParams{Delivery: d.Number, Attempt: int64(d.Attempt), StartedAt: d.Start.UnixMilli(),
			EndedAt: d.End.UnixMilli(), Outcome: d.Outcome, Error: orNull(d.Error), Worker: orNull(d.Worker)})
	}
	return j, nil
}

// fill gives what is missing its default.
func (im *Import) fill(a *Archived, now time.Time) {
	for _, t := range []*time.Time{&a.CreatedAt, &a.UpdatedAt} {
		if t.IsZero() {
			*t = now
		}
	}
	if a.AvailableAt.IsZero() {
		a.AvailableAt = a.CreatedAt
	}
	if a.State == "" {
		if a.State = Ready; a.AvailableAt.After(now) {
			a.State = Delayed
		}
	}
	if a.State == Failed && a.Reason == "" {
		a.Reason = UnknownReason
	}
	if a.MaxAttempts == 0 {
		a.MaxAttempts = im.s.cfg.maxRetries + 1
	}
	if a.Delivery == 0 {
		a.Delivery = int64(a.Attempts)
	}
	if a.State == Leased && (!im.keeps || a.Receipt == "") {
		a.Receipt = newReceipt(a.Delivery) // that nobody has: the lease runs out
	}
}

func (im *Import) checkID(a *Archived) error {
	if !im.keeps {
		return nil
	}
	if a.ID < im.opts.IDs.First || a.ID > im.opts.IDs.Last {
		return invalid("id %d: the ids of this import are from %d to %d", a.ID, im.opts.IDs.First, im.opts.IDs.Last)
	}
	if a.ID <= im.last {
		return invalid("id %d after id %d: ids must rise", a.ID, im.last)
	}
	return nil
}

// checkContent asks what a put would ask.
func (im *Import) checkContent(a *Archived) error {
	if err := checkQueueName(a.Queue); err != nil {
		return err
	}
	if len(a.Payload) > im.s.cfg.maxPayload {
		return fmt.Errorf("%w: %d bytes, at most %d (WithMaxPayload)", ErrPayloadTooLarge, len(a.Payload), im.s.cfg.maxPayload)
	}
	if a.Pending && a.JobID == "" {
		return invalid("unique while pending, but without a job_id")
	}
	if a.MaxAttempts < 1 || checkMaxRetries(a.MaxAttempts-1) != nil {
		return invalid("max_attempts is %d: must be between 1 and 2^30+1", a.MaxAttempts)
	}
	var headers putSpec
	for name, value := range a.Headers {
		if err := Header(name, value).applyPut(&headers); err != nil {
			return err
		}
	}
	return nil
}

func checkTexts(a *Archived) error {
	if !utf8.ValidString(a.LastError) {
		return invalid("the last error is not UTF-8")
	}
	for _, t := range []struct {
		what, text string
		most       int
	}{{"job_id", a.JobID, maxKey}, {"receipt", a.Receipt, maxWho}, {"claimed_by", a.ClaimedBy, maxWho}} {
		if err := checkText(t.what, t.text, t.most); err != nil {
			return err
		}
	}
	return nil
}

func checkState(a *Archived) error {
	switch {
	case a.State == Leased && a.LeaseUntil.IsZero():
		return invalid("leased without an end")
	case a.State != Leased && !a.LeaseUntil.IsZero():
		return invalid("has a lease's end but is %s", a.State)
	case a.State != Leased && a.Receipt != "":
		return invalid("has a receipt but is %s", a.State)
	case a.State != Failed && a.Reason != "":
		return invalid("has a reason to have failed but is %s", a.State)
	case a.State == Failed:
		switch a.Reason {
		case RetriesExhausted, LeaseExpired, Permanent, InvalidPayload, Panicked, Cancelled, UnknownReason:
		default:
			return invalid("reason %q is none that a job fails for", cutText(string(a.Reason), 80))
		}
	}
	return nil
}

func checkCounts(a *Archived) error {
	switch {
	case a.Attempts < 0:
		return invalid("attempts is %d: must not be negative", a.Attempts)
	case a.Delivery < int64(a.Attempts) || a.Delivery > maxNumber:
		return invalid("delivery %d after %d attempts: must not be less, nor above 2^53-1", a.Delivery, a.Attempts)
	case a.State == Leased && (a.Attempts < 1 || a.Attempts > a.MaxAttempts):
		return invalid("leased with %d attempts of at most %d", a.Attempts, a.MaxAttempts)
	case (a.State == Ready || a.State == Delayed) && a.Attempts >= a.MaxAttempts:
		return invalid("%s after %d attempts of at most %d", a.State, a.Attempts, a.MaxAttempts)
	}
	return nil
}

func checkHistory(a *Archived) error {
	last := int64(-1)
	for _, d := range a.History {
		switch {
		case d.Number <= last:
			return invalid("history: delivery %d after delivery %d: must rise, from 0", d.Number, last)
		case d.Number > a.Delivery:
			return invalid("history: delivery %d, the job had only %d", d.Number, a.Delivery)
		case d.Attempt < 0 || int64(d.Attempt) > maxNumber:
			return invalid("history: attempt %d of delivery %d", d.Attempt, d.Number)
		case d.Outcome == "":
			return invalid("history: delivery %d has no outcome", d.Number)
		case !utf8.ValidString(d.Error):
			return invalid("history: the error of delivery %d is not UTF-8", d.Number)
		}
		if err := checkText("outcome in the history", d.Outcome, maxName); err != nil {
			return err
		}
		if err := checkText("worker in the history", d.Worker, maxWho); err != nil {
			return err
		}
		last = d.Number
	}
	return nil
}

// checkInstants: from 1970, which is the 0 of the file, to as far ahead as a put may delay a job.
func checkInstants(a *Archived, now time.Time) error {
	latest := now.Add(maxDelay)
	possible := func(what string, t time.Time) error {
		if t.UnixMilli() < 0 || t.After(latest) {
			return invalid("%s is %s: must be between 1970 and 100 years ahead", what, t.UTC().Format(time.RFC3339))
		}
		return nil
	}
	for _, i := range []struct {
		what    string
		t       time.Time
		missing bool // it may be
	}{{"available_at", a.AvailableAt, false}, {"created_at", a.CreatedAt, false}, {"updated_at", a.UpdatedAt, false},
		{"lease_until", a.LeaseUntil, true}, {"claimed_at", a.ClaimedAt, true}} {
		if i.missing && i.t.IsZero() {
			continue
		}
		if err := possible(i.what, i.t); err != nil {
			return err
		}
	}
	for _, d := range a.History {
		for _, t := range []time.Time{d.Start, d.End} {
			if err := possible(fmt.Sprintf("a time of delivery %d", d.Number), t); err != nil {
				return err
			}
		}
	}
	return nil
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func millisOrNull(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}
