package queue

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// The batch forms answer per delivery: errs[i] is nil or matches ErrLeaseLost. err means that nothing of the batch was
// stored.

// AckMany acks many deliveries in one transaction, with one statement.
func (q *Queue) AckMany(ctx context.Context, refs []Ref) (errs []error, err error) {
	return q.settleMany(ctx, "ack", unsynced, refs, func(t *txn) (err error) {
		errs, err = q.ackRefs(t, refs)
		return err
	}, &errs)
}

// ackRefs acks deliveries in a transaction, many of them with one statement.
func (q *Queue) ackRefs(t *txn, refs []Ref) ([]error, error) {
	errs := make([]error, len(refs))
	if len(refs) < manyAcks || repeated(refs) {
		for i, r := range refs {
			if errs[i] = q.ack(t, r.ID, r.Receipt); errs[i] != nil && !errors.Is(errs[i], ErrLeaseLost) {
				return nil, errs[i]
			}
		}
		return errs, nil
	}
	acked, err := t.q.AckMany(context.Background(), sqlite.AckManyParams{Now: t.now, Refs: refList(refs), Queue: q.name})
	if err != nil {
		return nil, err
	}
	t.ring(forRoom, q.name, len(acked))
	if len(acked) < len(refs) {
		slices.Sort(acked)
		for i, r := range refs {
			if _, ok := slices.BinarySearch(acked, r.ID); ok {
				continue
			}
			errs[i] = q.whyLost(t, r.ID, r.Receipt)
			if !errors.Is(errs[i], ErrLeaseLost) {
				return nil, errs[i]
			}
		}
	}
	return errs, q.plantedAfterAck(t)
}

// NackMany nacks many deliveries in one transaction. See [Queue.Nack].
func (q *Queue) NackMany(ctx context.Context, refs []Ref, cause error, opts ...SettleOption) ([]error, error) {
	spec, err := settling(cause, opts, "", Panicked)
	return q.each(ctx, "nack", synced, refs, err, func(t *txn, r Ref) error { return q.nack(t, r.ID, r.Receipt, spec) })
}

// FailMany fails many deliveries in one transaction. See [Queue.Fail].
func (q *Queue) FailMany(ctx context.Context, refs []Ref, cause error, opts ...SettleOption) ([]error, error) {
	spec, err := settling(cause, opts, Permanent, InvalidPayload, Panicked)
	return q.each(ctx, "fail", synced, refs, err, func(t *txn, r Ref) error { return q.failJob(t, r.ID, r.Receipt, spec) })
}

// ReleaseMany releases many deliveries in one transaction. See [Queue.Release].
func (q *Queue) ReleaseMany(ctx context.Context, refs []Ref, opts ...SettleOption) ([]error, error) {
	spec, err := settling(nil, opts, "")
	return q.each(ctx, "release", unsynced, refs, err, func(t *txn, r Ref) error { return q.release(t, r.ID, r.Receipt, spec) })
}

// each settles one delivery after the other in a transaction; a lost lease fails only itself.
func (q *Queue) each(ctx context.Context, op string, sync syncing, refs []Ref, bad error, settle func(*txn, Ref) error) (errs []error, err error) {
	if bad != nil {
		return nil, q.fail(op, bad)
	}
	return q.settleMany(ctx, op, sync, refs, func(t *txn) error {
		errs = make([]error, len(refs))
		for i, r := range refs {
			if errs[i] = settle(t, r); errs[i] != nil && !errors.Is(errs[i], ErrLeaseLost) {
				return errs[i]
			}
		}
		return nil
	}, &errs)
}

func (q *Queue) settleMany(ctx context.Context, what string, sync syncing, refs []Ref, fn func(*txn) error, errs *[]error) ([]error, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	if err := q.s.write(ctx, settleOp(sync, len(refs), fn)); err != nil {
		return nil, q.fail(what, err)
	}
	return *errs, nil
}

// Beat is the answer of a heartbeat for one delivery.
type Beat struct {
	LeaseUntil time.Time
	Err        error // nil, or matches ErrLeaseLost
}

// Heartbeat renews many leases to end d from now, in one statement. It never shortens a lease and never revives one that
// has ended.
func (q *Queue) Heartbeat(ctx context.Context, refs []Ref, d time.Duration) ([]Beat, error) {
	if d <= 0 || d > maxDelay {
		return nil, q.fail("heartbeat", invalid("lease %v: must be more than 0 and at most 100 years", d))
	}
	if len(refs) == 0 {
		return nil, nil
	}
	beats := make([]Beat, len(refs))
	err := q.s.write(ctx, settleOp(unsynced, len(refs), func(t *txn) error {
		if !repeated(refs) {
			return q.beat(t, refs, d, beats)
		}
		for i := range refs {
			if err := q.beat(t, refs[i:i+1], d, beats[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		return nil, q.fail("heartbeat", err)
	}
	return beats, nil
}

// beat renews leases of different jobs.
func (q *Queue) beat(t *txn, refs []Ref, d time.Duration, beats []Beat) error {
	rows, err := t.q.Heartbeat(context.Background(), sqlite.HeartbeatParams{Until: t.now + millis(d), Refs: refList(refs), Queue: q.name, Now: t.now})
	if err != nil {
		return err
	}
	until := make(map[int64]int64, len(rows))
	for _, r := range rows {
		until[r.ID] = r.LeaseUntil
	}
	for i, r := range refs {
		if end, ok := until[r.ID]; ok {
			beats[i] = Beat{LeaseUntil: fromMillis(end)}
			continue
		}
		beats[i].Err = q.whyLost(t, r.ID, r.Receipt)
		if !errors.Is(beats[i].Err, ErrLeaseLost) {
			return beats[i].Err
		}
	}
	return nil
}

// Held tells which deliveries still hold their job, whatever their lease's end, without the write lock: a cheap look
// between heartbeats for jobs that were cancelled.
func (q *Queue) Held(ctx context.Context, refs []Ref) ([]bool, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	held := make([]bool, len(refs))
	if repeated(refs) {
		for i := range refs {
			if err := q.look(ctx, refs[i:i+1], held[i:i+1]); err != nil {
				return nil, err
			}
		}
		return held, nil
	}
	return held, q.look(ctx, refs, held)
}

// look is Held for different jobs.
func (q *Queue) look(ctx context.Context, refs []Ref, held []bool) error {
	rows, err := q.s.read.Held(ctx, sqlite.HeldParams{Refs: refList(refs), Queue: q.name})
	if err != nil {
		return q.fail("look at leases", q.s.readError(ctx, err))
	}
	found := make(map[int64]bool, len(rows))
	for _, id := range rows {
		found[id] = true
	}
	for i, r := range refs {
		held[i] = found[r.ID]
	}
	return nil
}

// repeated tells whether a batch names a job twice, perhaps with the receipt of an earlier delivery: the statements for a
// batch answer by id, which couldn't tell the two apart.
func repeated(refs []Ref) bool {
	rising := true
	for i := 1; i < len(refs) && rising; i++ {
		rising = refs[i].ID > refs[i-1].ID
	}
	if rising {
		return false
	}
	seen := make(map[int64]bool, len(refs))
	for _, r := range refs {
		if seen[r.ID] {
			return true
		}
		seen[r.ID] = true
	}
	return false
}

// refList renders deliveries as the JSON array of the batch statements: "id:receipt" each.
func refList(refs []Ref) string {
	b := append(make([]byte, 0, 56*len(refs)), '[')
	for i, r := range refs {
		if i > 0 {
			b = append(b, ',')
		}
		if receiptNumber(r.Receipt) > 0 && plainText(r.Receipt) {
			b = strconv.AppendInt(append(b, '"'), r.ID, 10)
			b = append(append(append(b, ':'), r.Receipt...), '"')
		} else { // a receipt of another form, from the Python original or garbage
			text, _ := json.Marshal(strconv.FormatInt(r.ID, 10) + ":" + r.Receipt) // a string always encodes
			b = append(b, text...)
		}
	}
	return string(append(b, ']'))
}

func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
