//go:build unix

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/localqueue/localqueue/cmd/localqueue/internal/safe"
	"github.com/localqueue/localqueue/queue"
)

// printRecord shows one job: with --json all of it, to a pipe its bytes, to a terminal its story, as a person reads it.
// now is what ages are counted to.
func (a *app) printRecord(r *queue.Record, history []queue.Delivery, showHistory bool, now time.Time) error {
	switch {
	case a.json:
		doc := newRecordDoc(r)
		if showHistory {
			doc.History = newHistory(history)
		}
		return a.printJSON(doc)
	case !a.outTerminal:
		return a.printPayload(r.Payload, false)
	}
	if err := a.printHead(r); err != nil {
		return err
	}
	s := story{r: r, now: now}
	s.put()
	if showHistory {
		s.past(history)
	}
	s.present()
	if err := a.print(nil, "\n%s\npayload, %s:\n", s.text.String(), counted(len(r.Payload), "byte")); err != nil {
		return err
	}
	return a.printPayload(r.Payload, true)
}

// printHead is what doesn't change, or is only a number.
func (a *app) printHead(r *queue.Record) error {
	return a.table(func(row func(...any)) {
		row("id", r.ID)
		row("queue", safe.Line(r.Queue))
		state := string(r.State)
		if r.Reason != "" {
			state += " (" + string(r.Reason) + ")"
		}
		row("state", state)
		row("attempts", fmt.Sprintf("%d of %d", r.Attempts, r.MaxAttempts))
		row("priority", r.Priority)
		if r.JobID != "" {
			held := ""
			if r.Pending {
				held = " (held until the job is acked or failed)"
			}
			row("job_id", safe.Line(r.JobID)+held)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
			row("header", safe.Line(name+"="+r.Headers[name]))
		}
		if r.Receipt != "" {
			row("receipt", safe.Line(r.Receipt))
		}
	})
}

// story is a job's life, an event a line.
type story struct {
	r    *queue.Record
	now  time.Time
	text strings.Builder
	last int64  // the delivery told last
	try  int    // its attempt
	told string // its error
}

// event tells what happened at an instant, with its age.
func (s *story) event(at time.Time, format string, args ...any) {
	fmt.Fprintf(&s.text, "%s  %-16s  %s\n", instant(at), s.age(at), safe.Line(fmt.Sprintf(format, args...)))
}

func (s *story) age(at time.Time) string { return humanize.RelTime(at, s.now, "ago", "from now") }

// aside tells what has no instant.
func (s *story) aside(format string, args ...any) {
	fmt.Fprintf(&s.text, "%44s%s\n", "", safe.Line(fmt.Sprintf(format, args...)))
}

// quote sets an error's lines in.
func (s *story) quote(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(&s.text, "%44s| %s\n", "", safe.Line(strings.TrimRight(line, "\r\n")))
	}
}

func (s *story) put() {
	later := ""
	if s.r.Attempts == 0 && s.r.AvailableAt.Sub(s.r.CreatedAt) >= time.Millisecond && s.r.Delivery == 0 {
		later = " for " + instant(s.r.AvailableAt)
	}
	s.event(s.r.CreatedAt, "put%s", later)
}

// past is the history of failed deliveries. Those that are missing in it were given back, or are older than what is kept.
func (s *story) past(history []queue.Delivery) {
	for _, d := range history {
		s.gap(d.Number - 1)
		s.retried(d.Attempt)
		s.event(d.Start, "delivery %d, attempt %d%s", d.Number, d.Attempt, by(d.Worker))
		s.event(d.End, "%s after %s", outcome(d.Outcome), took(d.Start, d.End))
		s.quote(d.Error)
		s.last, s.try, s.told = d.Number, d.Attempt, cmp.Or(d.Error, s.told)
	}
	gone := s.r.Delivery
	if s.r.State == queue.Leased || s.r.State == queue.Acked {
		gone-- // the last one is told as the present
	}
	s.gap(gone)
}

func (s *story) gap(upTo int64) {
	if upTo <= s.last {
		return
	}
	which := fmt.Sprintf("delivery %d", upTo)
	if first := s.last + 1; first < upTo {
		which = fmt.Sprintf("deliveries %d to %d", first, upTo)
	}
	s.aside("(%s: given back unused, or too old to be kept)", which)
	s.last = upTo
}

// retried tells of a return from the dead letters, which shows in attempts that start anew.
func (s *story) retried(attempt int) {
	if s.try > 0 && attempt <= s.try {
		s.aside("(retried from the dead letters: attempts start anew)")
	}
}

// present is where the job stands now.
func (s *story) present() {
	r := s.r
	switch r.State {
	case queue.Ready, queue.Delayed:
		s.retried(r.Attempts + 1)
		since := later(r.AvailableAt, r.UpdatedAt)
		switch {
		case r.State == queue.Delayed && r.AvailableAt.After(s.now):
			s.event(r.AvailableAt, "delayed until then")
		case r.State == queue.Delayed:
			s.event(r.AvailableAt, "due since then; the next claim may take it")
		default:
			s.event(since, "ready since then, to be claimed")
		}
	case queue.Leased:
		s.retried(r.Attempts)
		s.event(later(r.ClaimedAt, r.CreatedAt), "delivery %d, attempt %d%s", r.Delivery, r.Attempts, by(r.ClaimedBy))
		switch {
		case r.LeaseUntil.IsZero():
			s.aside("leased without an end: reclaim frees it")
		case r.LeaseUntil.After(s.now):
			s.event(r.LeaseUntil, "leased until then")
		default:
			s.event(r.LeaseUntil, "its lease ended, and nothing has picked it up yet")
		}
	case queue.Acked:
		s.retried(r.Attempts)
		after := ""
		if !r.ClaimedAt.IsZero() {
			s.event(r.ClaimedAt, "delivery %d, attempt %d%s", r.Delivery, r.Attempts, by(r.ClaimedBy))
			after = " after " + took(r.ClaimedAt, r.UpdatedAt)
		}
		s.event(r.UpdatedAt, "acked%s", after)
	case queue.Failed:
		s.event(r.UpdatedAt, "dead since then: %s", reasonText(r.Reason))
	}
	if r.LastError != "" && r.LastError != s.told {
		s.aside("the last error:")
		s.quote(r.LastError)
	}
}

func by(worker string) string {
	if worker == "" {
		return ""
	}
	return ", by " + worker
}

func took(start, end time.Time) string { return end.Sub(start).Round(time.Millisecond).String() }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// outcome names how a delivery ended.
func outcome(name string) string {
	switch name {
	case "lease_expired":
		return "its lease ended"
	case "panic":
		return "panicked"
	}
	return name
}

func reasonText(r queue.Reason) string {
	switch r {
	case queue.RetriesExhausted:
		return "it was nacked on its last attempt"
	case queue.LeaseExpired:
		return "the lease of its last attempt ended"
	case queue.Permanent:
		return "its receiver failed it for good"
	case queue.InvalidPayload:
		return "its payload can't be decoded"
	case queue.Panicked:
		return "its last attempt panicked"
	case queue.Cancelled:
		return "it was cancelled"
	}
	return "another program failed it"
}
