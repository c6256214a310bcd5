package queue

import (
	"context"
	"time"
)

// State is where a job stands.
type State string

const (
	Ready   State = "ready"   // claimable now
	Delayed State = "delayed" // ready, but not yet due
	Leased  State = "leased"  // held by a receiver
	Acked   State = "acked"   // done
	Failed  State = "failed"  // in the dead letters
)

// Reason says why a job is in the dead letters.
type Reason string

const (
	RetriesExhausted Reason = "retries_exhausted" // nacked on its last delivery
	LeaseExpired     Reason = "lease_expired"     // its last delivery's lease ended
	Permanent        Reason = "permanent"         // failed by its receiver
	InvalidPayload   Reason = "invalid_payload"   // the payload couldn't be decoded
	Panicked         Reason = "panic"             // the last delivery's handler panicked
	Cancelled        Reason = "cancelled"
	UnknownReason    Reason = "unknown" // written by another program or version
)

// Job is one delivery of a job: what a receiver holds until its lease ends. Its methods settle it.
type Job struct {
	ID          int64
	Queue       string
	JobID       string // the de-duplication key; "" when none was given
	Payload     []byte
	Headers     map[string]string // nil when none were given
	Priority    int16
	Attempt     int   // which delivery attempt this is, from 1; a released delivery isn't counted
	MaxAttempts int   // after this many the job goes to the dead letters
	Delivery    int64 // fencing number: grows with every delivery of the job, never reset
	Receipt     string
	EnqueuedAt  time.Time
	LeaseUntil  time.Time // as granted at the claim; Extend returns the new end
	LastError   string    // of an earlier delivery

	queue *Queue
}

// Ref names the delivery for the batch calls (AckMany and friends).
func (j *Job) Ref() Ref { return Ref{ID: j.ID, Receipt: j.Receipt} }

// Ack marks the job as done. See [Queue.Ack].
func (j *Job) Ack(ctx context.Context) error { return j.queue.Ack(ctx, j.ID, j.Receipt) }

// AckWith acks the job and runs fn's operations in the same transaction: both happen or neither. See [Queue.AckWith].
func (j *Job) AckWith(ctx context.Context, fn func(tx *Tx) error) error {
	return j.queue.AckWith(ctx, j.ID, j.Receipt, fn)
}

// AckTx acks the job in a transaction that the caller commits. See [Queue.AckTx].
func (j *Job) AckTx(ctx context.Context, tx DBTX) error {
	return j.queue.AckTx(ctx, tx, j.ID, j.Receipt)
}

// Nack gives the job back for another delivery, or to the dead letters after the last one. See [Queue.Nack].
func (j *Job) Nack(ctx context.Context, cause error, opts ...SettleOption) error {
	return j.queue.Nack(ctx, j.ID, j.Receipt, cause, opts...)
}

// Fail moves the job to the dead letters. See [Queue.Fail].
func (j *Job) Fail(ctx context.Context, cause error, opts ...SettleOption) error {
	return j.queue.Fail(ctx, j.ID, j.Receipt, cause, opts...)
}

// Release gives the job back as if it had not been delivered. See [Queue.Release].
func (j *Job) Release(ctx context.Context, opts ...SettleOption) error {
	return j.queue.Release(ctx, j.ID, j.Receipt, opts...)
}

// Extend sets the lease to end d from now and returns that instant. See [Queue.Extend].
func (j *Job) Extend(ctx context.Context, d time.Duration) (time.Time, error) {
	return j.queue.Extend(ctx, j.ID, j.Receipt, d)
}

// Ref names one delivery: a job's id and the receipt of the claim.
type Ref struct {
	ID      int64
	Receipt string
}

// Record is a job as an operator sees it: whatever its state, without a lease. See List, Show and Peek.
type Record struct {
	ID          int64
	Queue       string
	State       State
	JobID       string
	Pending     bool // the JobID is unique only while the job is pending
	Payload     []byte
	Headers     map[string]string
	Priority    int16
	Attempts    int
	MaxAttempts int
	Delivery    int64
	Reason      Reason // of a failed job, else ""
	LastError   string
	Receipt     string // of a leased job, else ""
	AvailableAt time.Time
	LeaseUntil  time.Time // zero unless leased
	ClaimedAt   time.Time // of the last claim; zero if there was none
	ClaimedBy   string    // host:pid:name of the last claim
	CreatedAt   time.Time
	UpdatedAt   time.Time // the last transition
}

// Delivery is one failed delivery in a job's history. The last 20 are kept.
type Delivery struct {
	Number  int64
	Attempt int
	Start   time.Time
	End     time.Time // not before Start, also where the clock stepped back between them
	Outcome string    // nacked, failed, lease_expired, panic, cancelled
	Error   string    // up to 8 KiB
	Worker  string    // host:pid:name
}
