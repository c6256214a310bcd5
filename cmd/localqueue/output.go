//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/localqueue/localqueue/cmd/localqueue/internal/safe"
	"github.com/localqueue/localqueue/queue"
)

// print writes one result: doc with --json, else the text.
func (a *app) print(doc any, format string, args ...any) error {
	if a.json {
		return a.printJSON(doc)
	}
	_, err := fmt.Fprintf(a.out, format, args...)
	return wrapOutput(err)
}

func (a *app) printJSON(doc any) error {
	b, err := marshal(doc)
	if err != nil {
		return err
	}
	_, err = a.out.Write(b) // one write, so that a document is whole or missing
	return wrapOutput(err)
}

// marshal is one line of JSON.
func marshal(doc any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(doc)
	return b.Bytes(), err
}

// note tells the user something that isn't a result.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintf(a.err, "localqueue: "+format+"\n", args...) // stderr is the last resort
}

// table writes aligned columns. Cells must be one safe line each.
func (a *app) table(fill func(row func(cells ...any))) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fill(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				_, _ = io.WriteString(w, "\t") // errors come back from Flush
			}
			_, _ = fmt.Fprint(w, c)
		}
		_, _ = io.WriteString(w, "\n")
	})
	return wrapOutput(w.Flush())
}

// printPayload writes the bytes as they are to a pipe or file, and a safe rendering to a terminal.
func (a *app) printPayload(p []byte, newline bool) error {
	if a.outTerminal {
		p, newline = []byte(safe.Block(p)), true
	}
	if newline {
		p = append(bytes.Clone(p), '\n')
	}
	_, err := a.out.Write(p)
	return wrapOutput(err)
}

func parseID(s string) (int64, error) {
	id, err := strconv.ParseUint(s, 10, 63) // no sign
	if err != nil || id == 0 {
		return 0, usagef("%q is not the id of a job: give the number that put, get or list printed", s)
	}
	return int64(id), nil
}

// payloadDoc shows a payload in JSON. The exact bytes are in text or base64; payload is there if they are strict JSON.
type payloadDoc struct {
	Payload json.RawMessage `json:"payload,omitempty"`
	Text    *string         `json:"text,omitempty"`
	Base64  *string         `json:"base64,omitempty"`
}

func newPayloadDoc(p []byte) payloadDoc {
	if !utf8.Valid(p) {
		s := base64.StdEncoding.EncodeToString(p)
		return payloadDoc{Base64: &s}
	}
	text := string(p)
	doc := payloadDoc{Text: &text}
	if json.Valid(p) {
		doc.Payload = p
	}
	return doc
}

// jobDoc is a claimed job.
type jobDoc struct {
	ID          int64             `json:"id"`
	Queue       string            `json:"queue"`
	Receipt     string            `json:"receipt"`
	Attempt     int               `json:"attempt"`
	MaxAttempts int               `json:"max_attempts"`
	Delivery    int64             `json:"delivery"`
	LeaseUntil  string            `json:"lease_until"`
	EnqueuedAt  string            `json:"enqueued_at"`
	JobID       *string           `json:"job_id"`
	Priority    int16             `json:"priority"`
	Headers     map[string]string `json:"headers"`
	LastError   *string           `json:"last_error"`
	payloadDoc
}

func newJobDoc(j *queue.Job) jobDoc {
	return jobDoc{
		ID: j.ID, Queue: j.Queue, Receipt: j.Receipt, Attempt: j.Attempt, MaxAttempts: j.MaxAttempts, Delivery: j.Delivery,
		LeaseUntil: instant(j.LeaseUntil), EnqueuedAt: instant(j.EnqueuedAt), JobID: orNull(j.JobID), Priority: j.Priority,
		Headers: orEmpty(j.Headers), LastError: orNull(j.LastError), payloadDoc: newPayloadDoc(j.Payload),
	}
}

// recordDoc is a job as list, show and peek see it.
type recordDoc struct {
	ID                 int64             `json:"id"`
	Queue              string            `json:"queue"`
	State              queue.State       `json:"state"`
	Reason             *string           `json:"reason"`
	JobID              *string           `json:"job_id"`
	UniqueWhilePending bool              `json:"unique_while_pending"`
	Priority           int16             `json:"priority"`
	Attempts           int               `json:"attempts"`
	MaxAttempts        int               `json:"max_attempts"`
	Delivery           int64             `json:"delivery"`
	AvailableAt        *string           `json:"available_at"`
	LeaseUntil         *string           `json:"lease_until"`
	Receipt            *string           `json:"receipt"`
	ClaimedAt          *string           `json:"claimed_at"`
	ClaimedBy          *string           `json:"claimed_by"`
	CreatedAt          *string           `json:"created_at"`
	UpdatedAt          *string           `json:"updated_at"`
	LastError          *string           `json:"last_error"`
	Headers            map[string]string `json:"headers"`
	payloadDoc
	History []deliveryDoc `json:"history,omitzero"` // show only
	Next    string        `json:"next,omitempty"`   // list: on the last job of a page that has a successor
}

type deliveryDoc struct {
	Delivery int64   `json:"delivery"`
	Attempt  int     `json:"attempt"`
	Start    *string `json:"start"`
	End      *string `json:"end"`
	Outcome  string  `json:"outcome"`
	Error    *string `json:"error"`
	Worker   *string `json:"worker"`
}

func newRecordDoc(r *queue.Record) recordDoc {
	return recordDoc{
		ID: r.ID, Queue: r.Queue, State: r.State, Reason: orNull(string(r.Reason)), JobID: orNull(r.JobID), UniqueWhilePending: r.Pending,
		Priority: r.Priority, Attempts: r.Attempts, MaxAttempts: r.MaxAttempts, Delivery: r.Delivery, AvailableAt: instantOrNull(r.AvailableAt),
		LeaseUntil: instantOrNull(r.LeaseUntil), Receipt: orNull(r.Receipt), ClaimedAt: instantOrNull(r.ClaimedAt), ClaimedBy: orNull(r.ClaimedBy),
		CreatedAt: instantOrNull(r.CreatedAt), UpdatedAt: instantOrNull(r.UpdatedAt), LastError: orNull(r.LastError),
		Headers: orEmpty(r.Headers), payloadDoc: newPayloadDoc(r.Payload),
	}
}

func newHistory(history []queue.Delivery) []deliveryDoc {
	docs := make([]deliveryDoc, len(history))
	for i, d := range history {
		docs[i] = deliveryDoc{Delivery: d.Number, Attempt: d.Attempt, Start: instantOrNull(d.Start), End: instantOrNull(d.End),
			Outcome: d.Outcome, Error: orNull(d.Error), Worker: orNull(d.Worker)}
	}
	return docs
}

// instant is RFC 3339 in UTC, to the millisecond.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func instantOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := instant(t)
	return &s
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func orEmpty(h map[string]string) map[string]string {
	if h == nil {
		return map[string]string{}
	}
	return h
}

// or is s, or a dash to keep a column from being empty.
func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
