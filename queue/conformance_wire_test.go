package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// An operation of the suite is a message, so that it can go to a Store here or to one in another process.

// wireRequest is one operation. Only what the operation needs is set.
type wireRequest struct {
	Op    string
	Queue bin
	With  queueOpts

	Jobs    []jobSpec
	N       int
	ID      int64
	Receipt bin
	Refs    []queue.Ref
	Cause   *bin
	Delay   *time.Duration
	As      *queue.Reason
	For     time.Duration
	Key     bin
	State   queue.State
	List    queue.ListOptions
	Retry   queue.RetryFilter
	Delete  queue.DeleteFilter
	Failed  bool
	Quick   bool

	Steps   []wireRequest // inside a transaction
	Foreign bool          // the transaction is a *sql.Tx of the caller's
	Undo    bool          // and ends without a commit
	SQL     string

	Timeout time.Duration // until the context's deadline; 0: none
	Over    bool          // the context was cancelled before the call
}

// queueOpts are the options of a Queue.
type queueOpts struct {
	Lease      time.Duration
	MaxRetries *int
	MaxPending int
	MaxPayload int
}

func (o queueOpts) options() (opts []queue.Option) {
	if o.Lease != 0 {
		opts = append(opts, queue.WithLease(o.Lease))
	}
	if o.MaxRetries != nil {
		opts = append(opts, queue.WithMaxRetries(*o.MaxRetries))
	}
	if o.MaxPending != 0 {
		opts = append(opts, queue.WithMaxPending(o.MaxPending))
	}
	if o.MaxPayload != 0 {
		opts = append(opts, queue.WithMaxPayload(o.MaxPayload))
	}
	return opts
}

// storeOpts are the options of a Store.
type storeOpts struct {
	Busy       time.Duration
	Poll       time.Duration
	Durability queue.Durability
	Name       string
	RealClock  bool
}

func (o storeOpts) options(clock func() time.Time) (opts []queue.Option) {
	if o.Busy != 0 {
		opts = append(opts, queue.WithBusyTimeout(o.Busy))
	}
	if o.Poll != 0 {
		opts = append(opts, queue.WithPoll(o.Poll))
	}
	if o.Durability != "" {
		opts = append(opts, queue.WithDurability(o.Durability))
	}
	if o.Name != "" {
		opts = append(opts, queue.WithName(o.Name))
	}
	if !o.RealClock {
		opts = append(opts, queue.WithClock(clock))
	}
	return opts
}

// jobSpec is a job to put.
type jobSpec struct {
	Payload    []byte
	Key        *bin
	Pending    bool
	Delay      *time.Duration
	At         *time.Time
	Priority   *int16
	MaxRetries *int
	Headers    [][2]bin
}

func (s jobSpec) options() (opts []queue.PutOption) {
	if s.Key != nil {
		opts = append(opts, queue.JobID(string(*s.Key)))
	}
	if s.Pending {
		opts = append(opts, queue.UniqueWhilePending())
	}
	if s.Delay != nil {
		opts = append(opts, queue.Delay(*s.Delay))
	}
	if s.At != nil {
		opts = append(opts, queue.At(*s.At))
	}
	if s.Priority != nil {
		opts = append(opts, queue.Priority(*s.Priority))
	}
	if s.MaxRetries != nil {
		opts = append(opts, queue.MaxRetries(*s.MaxRetries))
	}
	for _, h := range s.Headers {
		opts = append(opts, queue.Header(string(h[0]), string(h[1])))
	}
	return opts
}

// wireResponse is the answer to one operation.
type wireResponse struct {
	Puts      []queue.PutResult
	Jobs      []*queue.Job
	Each      []carried
	Until     []time.Time
	Held      []bool
	Record    *queue.Record
	History   []queue.Delivery
	Page      queue.Page
	Records   []queue.Record
	Retried   queue.RetryReport
	Reclaimed queue.Reclaimed
	N         int
	Stats     []queue.Stats
	Findings  []queue.Finding
	Steps     []wireResponse
	Err       carried
}

func wireFailed(err error) wireResponse { return wireResponse{Err: carried{err}} }

func (r wireResponse) each() []error {
	if r.Each == nil {
		return nil
	}
	errs := make([]error, len(r.Each))
	for i, e := range r.Each {
		errs[i] = e.error
	}
	return errs
}

// bin is a string that may hold bytes JSON would rewrite.
type bin string

func (b bin) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(b)) }

func (b *bin) UnmarshalJSON(text []byte) error {
	var raw []byte
	err := json.Unmarshal(text, &raw)
	*b = bin(raw)
	return err
}

// sentinels are the errors that keep their meaning between processes, by name.
var sentinels = map[string]error{
	"ErrEmpty": queue.ErrEmpty, "ErrFull": queue.ErrFull, "ErrLeaseLost": queue.ErrLeaseLost, "ErrCancelled": queue.ErrCancelled,
	"ErrNotFound": queue.ErrNotFound, "ErrNotFailed": queue.ErrNotFailed, "ErrNotDelayed": queue.ErrNotDelayed,
	"ErrFinished": queue.ErrFinished, "ErrLeased": queue.ErrLeased, "ErrDuplicate": queue.ErrDuplicate, "ErrBusy": queue.ErrBusy,
	"ErrClosed": queue.ErrClosed, "ErrOutcomeUnknown": queue.ErrOutcomeUnknown, "ErrForeignTx": queue.ErrForeignTx,
	"ErrPayloadTooLarge": queue.ErrPayloadTooLarge, "ErrInvalid": queue.ErrInvalid, "ErrDiskFull": queue.ErrDiskFull,
	"ErrReadOnly": queue.ErrReadOnly, "ErrIO": queue.ErrIO, "ErrReplaced": queue.ErrReplaced, "ErrCorrupt": queue.ErrCorrupt,
	"Canceled": context.Canceled, "DeadlineExceeded": context.DeadlineExceeded,
}

// carried is an error that crosses to another process by the names of its sentinels.
type carried struct{ error }

type wireError struct {
	Text string
	Is   []string
	Lost *queue.LeaseLostError
	Dup  *queue.DuplicateError
}

func (c carried) MarshalJSON() ([]byte, error) {
	if c.error == nil {
		return []byte("null"), nil
	}
	w := wireError{Text: c.Error()}
	for name, sentinel := range sentinels {
		if errors.Is(c.error, sentinel) {
			w.Is = append(w.Is, name)
		}
	}
	_ = errors.As(c.error, &w.Lost)
	_ = errors.As(c.error, &w.Dup)
	return json.Marshal(w)
}

func (c *carried) UnmarshalJSON(text []byte) error {
	var w *wireError
	if err := json.Unmarshal(text, &w); err != nil || w == nil {
		return err
	}
	far := farError{text: w.Text}
	for _, name := range w.Is {
		far.is = append(far.is, sentinels[name])
	}
	if w.Lost != nil {
		far.is = append(far.is, w.Lost)
	}
	if w.Dup != nil {
		far.is = append(far.is, w.Dup)
	}
	c.error = far
	return nil
}

// farError is an error of another process.
type farError struct {
	text string
	is   []error
}

func (e farError) Error() string   { return e.text }
func (e farError) Unwrap() []error { return e.is }
