package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/localqueue/localqueue/queue"
)

// version is that of the format. A program refuses one that it doesn't know.
const version = 1

// header is the first line.
type header struct {
	Version   *int       `json:"localqueue_export"`
	ID        string     `json:"export"` // random: tells a repeat of the same import from another one
	Source    string     `json:"source"` // the identity of the file that the jobs come from
	CreatedAt instant    `json:"created_at"`
	Queue     *string    `json:"queue"` // the only one; null: all
	FirstID   int64      `json:"first_id"`
	LastID    int64      `json:"last_id"` // that the file had given when the export began
	Queues    []settings `json:"queues"`
}

type settings struct {
	Queue       string `json:"queue"`
	Paused      bool   `json:"paused"`
	KeepAckedMS *int64 `json:"keep_acked_ms"` // null: until purged
}

// jobLine is a line after the first.
type jobLine struct {
	ID                 int64             `json:"id"`
	Queue              string            `json:"queue"`
	State              queue.State       `json:"state"`
	Reason             *string           `json:"reason"`
	JobID              *string           `json:"job_id"`
	UniqueWhilePending bool              `json:"unique_while_pending"`
	Priority           int16             `json:"priority"`
	Attempts           int               `json:"attempts"`
	MaxAttempts        *int              `json:"max_attempts"`
	Delivery           int64             `json:"delivery"`
	AvailableAt        instant           `json:"available_at"`
	LeaseUntil         instant           `json:"lease_until"`
	Receipt            *string           `json:"receipt"`
	ClaimedAt          instant           `json:"claimed_at"`
	ClaimedBy          *string           `json:"claimed_by"`
	CreatedAt          instant           `json:"created_at"`
	UpdatedAt          instant           `json:"updated_at"`
	LastError          *string           `json:"last_error"`
	Headers            map[string]string `json:"headers"`
	Payload            json.RawMessage   `json:"payload,omitempty"` // read only: the value's bytes as written
	Text               *string           `json:"text,omitempty"`
	Base64             *string           `json:"base64,omitempty"`
	History            []deliveryLine    `json:"history"`

	End  *int  `json:"localqueue_export_end,omitempty"` // with this it is the last line, and no job
	Jobs int64 `json:"jobs,omitempty"`
}

// trailer is the last line.
type trailer struct {
	End  *int  `json:"localqueue_export_end"`
	Jobs int64 `json:"jobs"`
}

type deliveryLine struct {
	Delivery int64   `json:"delivery"`
	Attempt  int     `json:"attempt"`
	Start    instant `json:"start"`
	End      instant `json:"end"`
	Outcome  string  `json:"outcome"`
	Error    *string `json:"error"`
	Worker   *string `json:"worker"`
}

// instant is a time in JSON: RFC 3339, in UTC, to the millisecond. The zero time is null.
type instant struct{ time.Time }

func (i instant) MarshalJSON() ([]byte, error) {
	if i.IsZero() {
		return []byte("null"), nil
	}
	return []byte(i.UTC().Format(`"2006-01-02T15:04:05.000Z07:00"`)), nil
}

var errInstant = errors.New("an instant is not RFC 3339, as 2026-07-01T12:00:00.000Z is")

func (i *instant) UnmarshalJSON(b []byte) error {
	*i = instant{}
	if string(b) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(b, &text) != nil {
		return errInstant
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return errInstant
	}
	i.Time = t.UTC().Truncate(time.Millisecond)
	return nil
}

// encode is one line of JSON with its end.
func encode(line any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(line)
	return b.Bytes(), err
}

func encodeJob(a queue.Archived) ([]byte, error) {
	maxAttempts := a.MaxAttempts
	line := jobLine{
		ID: a.ID, Queue: a.Queue, State: a.State, Reason: orNull(string(a.Reason)), JobID: orNull(a.JobID), UniqueWhilePending: a.Pending,
		Priority: a.Priority, Attempts: a.Attempts, MaxAttempts: &maxAttempts, Delivery: a.Delivery, AvailableAt: instant{a.AvailableAt},
		LeaseUntil: instant{a.LeaseUntil}, Receipt: orNull(a.Receipt), ClaimedAt: instant{a.ClaimedAt}, ClaimedBy: orNull(a.ClaimedBy),
		CreatedAt: instant{a.CreatedAt}, UpdatedAt: instant{a.UpdatedAt}, LastError: orNull(a.LastError), Headers: a.Headers,
		History: make([]deliveryLine, len(a.History)),
	}
	if line.Headers == nil {
		line.Headers = map[string]string{}
	}
	var text string
	if utf8.Valid(a.Payload) {
		text = string(a.Payload)
		line.Text = &text
	} else {
		text = base64.StdEncoding.EncodeToString(a.Payload)
		line.Base64 = &text
	}
	for i, d := range a.History {
		line.History[i] = deliveryLine{Delivery: d.Number, Attempt: d.Attempt, Start: instant{d.Start}, End: instant{d.End},
			Outcome: d.Outcome, Error: orNull(d.Error), Worker: orNull(d.Worker)}
	}
	return encode(line)
}

// decodeHeader reads the first line. nil: it is none.
func decodeHeader(text []byte) (*header, error) {
	if !bytes.Contains(text, []byte(`"localqueue_export"`)) {
		return nil, nil // nor need a large line be decoded to know it
	}
	var h header
	err := decode(text, &h, headerShape)
	if h.Version == nil {
		return nil, nil //nolint:nilerr // whatever it is, it is no header
	}
	if *h.Version != version {
		return nil, fmt.Errorf("%w: %d, this program knows %d; use the newer program", ErrVersion, *h.Version, version)
	}
	if err != nil {
		return nil, err
	}
	return &h, nil
}

// decodeJob reads a line: a job, or the end of an export.
func decodeJob(text []byte) (job queue.Archived, end *trailer, err error) {
	var l jobLine
	if err := decode(text, &l, jobShape); err != nil {
		return job, nil, err
	}
	if l.End != nil {
		return job, &trailer{l.End, l.Jobs}, nil
	}
	if l.JobID != nil && *l.JobID == "" {
		return job, nil, errors.New("job_id is empty: leave it out, or null, instead")
	}
	if l.MaxAttempts != nil && *l.MaxAttempts < 1 {
		return job, nil, fmt.Errorf("max_attempts is %d: must be at least 1; leave it out, or null, for the default", *l.MaxAttempts)
	}
	job.Record = queue.Record{
		ID: l.ID, Queue: l.Queue, State: l.State, Reason: queue.Reason(deref(l.Reason)), JobID: deref(l.JobID), Pending: l.UniqueWhilePending,
		Priority: l.Priority, Attempts: l.Attempts, MaxAttempts: deref(l.MaxAttempts), Delivery: l.Delivery, AvailableAt: l.AvailableAt.Time,
		LeaseUntil: l.LeaseUntil.Time, Receipt: deref(l.Receipt), ClaimedAt: l.ClaimedAt.Time, ClaimedBy: deref(l.ClaimedBy),
		CreatedAt: l.CreatedAt.Time, UpdatedAt: l.UpdatedAt.Time, LastError: deref(l.LastError), Headers: l.Headers,
	}
	for _, d := range l.History {
		job.History = append(job.History, queue.Delivery{Number: d.Delivery, Attempt: d.Attempt, Start: d.Start.Time, End: d.End.Time,
			Outcome: d.Outcome, Error: deref(d.Error), Worker: deref(d.Worker)})
	}
	job.Payload, err = l.payload()
	return job, nil, err
}

// payload is the exact bytes: of text or base64 where there is one, since list and show print the value beside it.
func (l *jobLine) payload() ([]byte, error) {
	var exact []byte
	switch {
	case l.Text != nil && l.Base64 != nil:
		return nil, errors.New("both text and base64: which of them is the payload?")
	case l.Text != nil:
		exact = []byte(*l.Text)
	case l.Base64 != nil:
		var err error
		if exact, err = base64.StdEncoding.Strict().DecodeString(*l.Base64); err != nil {
			return nil, errors.New("base64 is not base64 of the standard alphabet, with padding")
		}
	case l.Payload != nil:
		return l.Payload, nil
	default:
		return nil, errors.New("no payload: give text, base64, or payload with a JSON value")
	}
	if l.Payload != nil && !sameJSON(l.Payload, exact) {
		return nil, errors.New("payload is another value than the text or base64 beside it: which of them counts?")
	}
	return exact, nil
}

// sameJSON says whether a text is another spelling of the value beside it: tools that pass lines on write it in their own.
func sameJSON(value, text []byte) bool {
	if bytes.Equal(value, text) {
		return true
	}
	read := func(b []byte) (v any, ok bool) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		return v, json.Valid(b) && d.Decode(&v) == nil
	}
	a, _ := read(value)
	b, ok := read(text)
	return ok && reflect.DeepEqual(a, b)
}

// decode reads one JSON object. What package json would mend in silence is refused, for a payload would change by it.
func decode(text []byte, into any, s *shape) error {
	if !utf8.Valid(text) {
		return errors.New("not UTF-8: bytes that aren't belong into base64")
	}
	if first := bytes.TrimLeft(text, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return errors.New("not a JSON object")
	}
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(text)):
		return errors.New("not JSON: it breaks off")
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: wrong at byte %d", syntax.Offset)
	case errors.As(err, &typed):
		return fmt.Errorf("%s: a JSON %s is not what belongs there", typed.Field, typed.Value)
	case err != nil:
		return err
	}
	if err := s.check(text); err != nil {
		return err
	}
	if l, ok := into.(*jobLine); ok && l.Payload != nil {
		text = bytes.Replace(text, l.Payload, []byte{' '}, 1) // taken as it is written
	}
	if hasLoneSurrogate(text) {
		return errors.New("half of a surrogate pair: bytes that aren't UTF-8 belong into base64")
	}
	return nil
}

// hasLoneSurrogate looks for an escape such as \ud83d without its other half.
func hasLoneSurrogate(text []byte) bool {
	for i := bytes.IndexByte(text, '\\'); i >= 0 && i+1 < len(text); {
		high := surrogate(text[i:])
		switch {
		case high == 'h' && surrogate(text[min(i+6, len(text)):]) == 'l':
			i += 12
		case high != 0:
			return true
		default:
			i += 2
		}
		next := bytes.IndexByte(text[min(i, len(text)):], '\\')
		if next < 0 {
			return false
		}
		i += next
	}
	return false
}

// surrogate tells whether an escape begins here that is the high half of a pair ('h'), the low one ('l'), or none (0).
func surrogate(text []byte) byte {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' || text[2]|0x20 != 'd' {
		return 0
	}
	switch text[3] | 0x20 {
	case '8', '9', 'a', 'b':
		return 'h'
	case 'c', 'd', 'e', 'f':
		return 'l'
	}
	return 0
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
