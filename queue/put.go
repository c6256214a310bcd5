package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// PutResult is what became of a put.
type PutResult struct {
	ID        int64
	Duplicate bool // the job_id was held: nothing was stored, ID is the holder
}

// putSpec is one job to store.
type putSpec struct {
	payload    []byte
	key        *string
	pendingKey bool
	delay      int64      // ms
	at         *time.Time // instead of delay
	priority   int16
	maxRetries int
	headers    map[string]string

	headersJSON *string
}

// inlineLimit is the size in bytes up to which a payload is kept in the job's row. Every transition rewrites the row.
const inlineLimit = 2000

// Put stores a job and returns after COMMIT. While WithMaxPending is reached it waits for room until ctx ends.
//
// Errors: ErrInvalid, ErrPayloadTooLarge, ErrFull (only from TryPut), ErrBusy, ErrClosed, ErrDiskFull, ErrIO, ErrCorrupt,
// ErrReplaced; nothing was stored then. ErrOutcomeUnknown: it may have been stored, and a JobID makes the repeat safe.
func (q *Queue) Put(ctx context.Context, payload []byte, opts ...PutOption) (PutResult, error) {
	return q.putOne(ctx, true, payload, opts)
}

// TryPut is Put that fails with ErrFull at once where Put would wait for room.
func (q *Queue) TryPut(ctx context.Context, payload []byte, opts ...PutOption) (PutResult, error) {
	return q.putOne(ctx, false, payload, opts)
}

// CheckPut tells whether Put would take the job, without touching the file.
func (q *Queue) CheckPut(payload []byte, opts ...PutOption) error {
	_, err := q.spec(payload, opts)
	return q.fail("put", err)
}

// CheckOptions tells whether these options make sense together, before there is a Store to put into. The error matches
// ErrInvalid.
func CheckOptions(opts ...PutOption) error {
	return new(putSpec).apply(opts, time.Now())
}

func (q *Queue) putOne(ctx context.Context, wait bool, payload []byte, opts []PutOption) (PutResult, error) {
	spec, err := q.spec(payload, opts)
	if err != nil {
		return PutResult{}, q.fail("put", err)
	}
	var res PutResult
	o := &op{sync: synced, rows: 1, run: func(t *txn) (err error) {
		res, err = q.put(t, spec)
		return err
	}}
	if q.plain(spec) && spec.key == nil && q.cfg.maxPending == 0 {
		o.put = &putOp{q, spec, &res}
	}
	err = q.withRoom(ctx, wait, 1, func() error { return q.s.write(ctx, o) })
	return res, q.fail("put", err)
}

func (q *Queue) spec(payload []byte, opts []PutOption) (*putSpec, error) {
	s := &putSpec{payload: notNil(payload), maxRetries: q.cfg.maxRetries}
	if err := s.apply(opts, q.s.Now()); err != nil {
		return nil, err
	}
	if len(payload) > q.cfg.maxPayload {
		return nil, fmt.Errorf("%w: %d bytes, at most %d (WithMaxPayload)", ErrPayloadTooLarge, len(payload), q.cfg.maxPayload)
	}
	return s, nil
}

// apply takes up the options and checks them together.
func (s *putSpec) apply(opts []PutOption, now time.Time) (err error) {
	for _, o := range opts {
		if err := o.applyPut(s); err != nil {
			return err
		}
	}
	if s.pendingKey && s.key == nil {
		return invalid("UniqueWhilePending needs a JobID")
	}
	if s.at != nil && s.at.After(now.Add(maxDelay)) {
		return invalid("At(%v): at most 100 years ahead", s.at)
	}
	s.headersJSON, err = encodeHeaders(s.headers)
	return err
}

// put stores one job in a transaction.
func (q *Queue) put(t *txn, spec *putSpec) (PutResult, error) {
	if q.cfg.maxPending > 0 {
		if res, err := q.makeSure(t, spec); err != nil || res.Duplicate {
			return res, err
		}
	}
	p := sqlite.PutParams{
		Queue: q.name, Payload: spec.payload, MaxAttempts: int64(spec.maxRetries) + 1, AvailableAt: t.now + spec.delay,
		JobID: spec.key, Now: t.now, Priority: int64(spec.priority), Headers: spec.headersJSON,
	}
	if spec.at != nil {
		p.AvailableAt = max(t.now, spec.at.Add(time.Millisecond-1).UnixMilli()) // up, as millis: never before its instant
	}
	if p.AvailableAt > t.now {
		p.Delayed = 1
	}
	if spec.pendingKey {
		p.KeyScope = 1
	}
	aside := len(spec.payload) > inlineLimit && !q.s.cfg.inline
	if aside {
		p.Payload = []byte{}
	}
	ctx := context.Background()
	result, err := t.q.Put(ctx, p)
	if err != nil {
		return PutResult{}, err
	}
	if n, err := result.RowsAffected(); err != nil {
		return PutResult{}, err
	} else if n == 0 {
		return q.holder(t, *spec.key)
	}
	id, err := result.LastInsertId()
	if err != nil {
		return PutResult{}, err
	}
	if aside {
		if err := t.q.PutPayload(ctx, sqlite.PutPayloadParams{MessageID: id, Data: spec.payload}); err != nil {
			return PutResult{}, err
		}
	}
	if p.Delayed == 0 {
		t.ring(forJobs, q.name, 1)
	} else {
		t.look = true
	}
	return PutResult{ID: id}, nil
}

// holder is the answer to a put whose key is held.
func (q *Queue) holder(t *txn, key string) (PutResult, error) {
	id, err := t.q.FindKey(context.Background(), sqlite.FindKeyParams{Queue: q.name, JobID: key})
	return PutResult{ID: id, Duplicate: true}, err
}

// makeSure answers a put on a limited queue: there is room, it is a duplicate, or ErrFull.
func (q *Queue) makeSure(t *txn, spec *putSpec) (PutResult, error) {
	ctx := context.Background()
	pending, err := t.q.Pending(ctx, q.name)
	if err != nil || pending < q.cfg.maxPending {
		return PutResult{}, err
	}
	if spec.key != nil {
		if res, err := q.holder(t, *spec.key); !errors.Is(err, sql.ErrNoRows) {
			return res, err
		}
	}
	return PutResult{}, q.full(pending)
}

func (q *Queue) full(pending int64) error {
	return fmt.Errorf("%w: %d pending, at most %d (WithMaxPending)", ErrFull, pending, q.cfg.maxPending)
}

// withRoom runs put, and again whenever there may be room, until it isn't refused as full or ctx ends. n is the least
// number of places it needs.
func (q *Queue) withRoom(ctx context.Context, wait bool, n int64, put func() error) error {
	err := put()
	if !errors.Is(err, ErrFull) || !wait || n > q.cfg.maxPending {
		return err
	}
	b := q.s.bells
	w := b.subscribe(bellKey{forRoom, q.name})
	defer func() { b.leave(w, err == nil) }()
	for {
		// Subscribed before it looks: an ack between the two is not missed. The look takes no write lock.
		var pending int64
		if pending, err = q.s.read.Pending(context.Background(), q.name); err != nil {
			return q.s.readError(ctx, err)
		}
		if err = q.s.file.check(); err != nil {
			return err
		}
		if pending+n <= q.cfg.maxPending {
			if err = put(); !errors.Is(err, ErrFull) {
				return err
			}
		}
		if err = b.wait(ctx, w); err != nil {
			return err
		}
	}
}
