package queue

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/localqueue/localqueue/db/sqlite"
)

// settleSpec says how a delivery ends.
type settleSpec struct {
	delay  int64 // ms
	reason Reason
	text   *string // the error; nil keeps the earlier one
}

// Ack marks a job as done. It needs the current receipt and a lease that hasn't ended; otherwise nothing changes and the
// error matches ErrLeaseLost and tells the cause ([LeaseLostError]). That holds for every settling call.
func (q *Queue) Ack(ctx context.Context, id int64, receipt string) error {
	o := settleOp(unsynced, 1, func(t *txn) error { return q.ack(t, id, receipt) })
	o.ack = &ackOp{q, Ref{ID: id, Receipt: receipt}}
	return q.fail("ack", q.s.write(ctx, o))
}

// Nack gives a job back for another delivery, at once or after a [Delay]; after its last delivery it goes to the dead
// letters. cause becomes the job's last error (cut at 8 KiB); nil keeps the earlier one. The delivery is kept in the
// job's history. Bad options leave the lease as it is.
func (q *Queue) Nack(ctx context.Context, id int64, receipt string, cause error, opts ...SettleOption) error {
	spec, err := settling(cause, opts, "", Panicked)
	if err != nil {
		return q.fail("nack", err)
	}
	// Synced, since this may be the move to the dead letters.
	return q.settle(ctx, "nack", synced, func(t *txn) error { return q.nack(t, id, receipt, spec) })
}

// Fail moves a job to the dead letters whatever deliveries it has left. See [As] for the reasons.
func (q *Queue) Fail(ctx context.Context, id int64, receipt string, cause error, opts ...SettleOption) error {
	spec, err := settling(cause, opts, Permanent, InvalidPayload, Panicked)
	if err != nil {
		return q.fail("fail", err)
	}
	return q.settle(ctx, "fail", synced, func(t *txn) error { return q.failJob(t, id, receipt, spec) })
}

// Release gives a job back as if it had not been delivered, at once or after a [Delay]: the attempt isn't used, also not
// the last one, and the history isn't touched. The delivery number stays used.
func (q *Queue) Release(ctx context.Context, id int64, receipt string, opts ...SettleOption) error {
	spec, err := settling(nil, opts, "")
	if err != nil {
		return q.fail("release", err)
	}
	return q.settle(ctx, "release", unsynced, func(t *txn) error { return q.release(t, id, receipt, spec) })
}

// AckWith acks a job and runs fn in the same transaction: its puts on any queue of the Store (PutTx), and any statements
// on the same file, happen with the ack or not at all. An error of fn undoes the ack too, and is returned.
func (q *Queue) AckWith(ctx context.Context, id int64, receipt string, fn func(tx *Tx) error) error {
	err := q.s.Tx(ctx, func(tx *Tx) error {
		if err := q.ack(tx.t, id, receipt); err != nil {
			return err
		}
		return fn(tx)
	})
	return q.fail("ack", err)
}

func (q *Queue) settle(ctx context.Context, what string, sync syncing, fn func(*txn) error) error {
	return q.fail(what, q.s.write(ctx, settleOp(sync, 1, fn)))
}

func settleOp(sync syncing, rows int, run func(*txn) error) *op {
	return &op{sync: sync, urgent: true, rows: rows, run: run}
}

// settling reads the options of a call. def is the reason if none is given; allowed are those that may be.
func settling(cause error, opts []SettleOption, def Reason, allowed ...Reason) (*settleSpec, error) {
	s := &settleSpec{reason: def}
	for _, o := range opts {
		if o == nil {
			return nil, invalid("a nil option")
		}
		if err := o.applySettle(s); err != nil {
			return nil, err
		}
	}
	if s.reason != def {
		ok := false
		for _, r := range allowed {
			ok = ok || r == s.reason
		}
		if !ok {
			return nil, invalid("As(%q) doesn't fit this call", string(s.reason))
		}
	}
	if cause != nil {
		text := cutText(cause.Error(), maxErrorText)
		s.text = &text
	}
	return s, nil
}

// cutText makes a text valid UTF-8 of at most n bytes.
func cutText(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

func (q *Queue) ack(t *txn, id int64, receipt string) error {
	receipt = q.plantedReceipt(t, id, receipt)
	n, err := t.q.Ack(context.Background(), sqlite.AckParams{Now: t.now, ID: id, Queue: q.name, Receipt: receipt})
	if err != nil {
		return err
	}
	if n == 0 {
		return q.whyLost(t, id, receipt)
	}
	t.ring(forRoom, q.name, 1)
	return q.plantedAfterAck(t)
}

func (q *Queue) nack(t *txn, id int64, receipt string, s *settleSpec) error {
	outcome, reason := "nacked", RetriesExhausted
	if s.reason == Panicked {
		outcome, reason = string(Panicked), Panicked
	}
	if err := q.record(t, id, receipt, outcome, s.text); err != nil {
		return err
	}
	status, err := t.q.Nack(context.Background(), sqlite.NackParams{Reason: string(reason), Delay: s.delay, Now: t.now, Error: s.text, ID: id, Queue: q.name, Receipt: receipt})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return q.whyLost(t, id, receipt)
	case err != nil:
		return err
	case status == statusFailed:
		t.ring(forRoom, q.name, 1)
	default:
		q.returned(t, s.delay)
	}
	return nil
}

// returned tells receivers of a job that is ready again, now or later.
func (q *Queue) returned(t *txn, delay int64) {
	if delay == 0 {
		t.ring(forJobs, q.name, 1)
	} else {
		t.look = true
	}
}

func (q *Queue) failJob(t *txn, id int64, receipt string, s *settleSpec) error {
	outcome := "failed"
	if s.reason == Panicked {
		outcome = string(Panicked)
	}
	if err := q.record(t, id, receipt, outcome, s.text); err != nil {
		return err
	}
	n, err := t.q.Fail(context.Background(), sqlite.FailParams{Reason: string(s.reason), Error: s.text, Now: t.now, ID: id, Queue: q.name, Receipt: receipt})
	if err != nil {
		return err
	}
	if n == 0 {
		return q.whyLost(t, id, receipt)
	}
	t.ring(forRoom, q.name, 1)
	return nil
}

func (q *Queue) release(t *txn, id int64, receipt string, s *settleSpec) error {
	n, err := t.q.Release(context.Background(), sqlite.ReleaseParams{Delay: s.delay, Now: t.now, ID: id, Queue: q.name, Receipt: receipt})
	if err != nil {
		return err
	}
	if n == 0 {
		return q.whyLost(t, id, receipt)
	}
	q.returned(t, s.delay)
	return nil
}

// record keeps a delivery that the next statement ends, on the same condition as that.
func (q *Queue) record(t *txn, id int64, receipt, outcome string, text *string) error {
	_, err := t.q.RecordDelivery(context.Background(), sqlite.RecordDeliveryParams{Now: t.now, Outcome: outcome, Error: text, ID: id, Queue: q.name, Receipt: receipt})
	return err
}

// Extend sets a lease to end d from now, sooner or later than it did, and returns that instant. d must be positive.
func (q *Queue) Extend(ctx context.Context, id int64, receipt string, d time.Duration) (time.Time, error) {
	if d <= 0 || d > maxDelay {
		return time.Time{}, q.fail("extend", invalid("lease %v: must be more than 0 and at most 100 years", d))
	}
	var until int64
	err := q.settle(ctx, "extend", unsynced, func(t *txn) error {
		until = t.now + millis(d)
		n, err := t.q.Extend(context.Background(), sqlite.ExtendParams{Until: until, ID: id, Queue: q.name, Receipt: receipt, Now: t.now})
		if err == nil && n == 0 {
			err = q.whyLost(t, id, receipt)
		}
		t.look = true // it may end sooner now
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	return fromMillis(until), nil
}
