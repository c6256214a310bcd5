package queue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/localqueue/localqueue/db/sqlite"
)

// NewJob is one job of a batch.
type NewJob struct {
	Payload []byte
	Options []PutOption
}

// A batch is stored in statements of at most this size: a blob ends at 10^9 bytes, and SQLite copies it.
const (
	chunkJobs  = 1000
	chunkBytes = 16 << 20
)

// PutMany stores a batch in one transaction, all or nothing, with ids in input order. Duplicates, also within the batch,
// share an id. With WithMaxPending only the new jobs count: a batch that can never fit fails at once with ErrFull, else
// it waits for room for all of it. An empty batch is fine. Errors as those of [Queue.Put].
func (q *Queue) PutMany(ctx context.Context, jobs []NewJob) ([]PutResult, error) {
	return q.putBatch(ctx, true, jobs)
}

// TryPutMany is PutMany that fails with ErrFull at once where PutMany would wait for room.
func (q *Queue) TryPutMany(ctx context.Context, jobs []NewJob) ([]PutResult, error) {
	return q.putBatch(ctx, false, jobs)
}

func (q *Queue) putBatch(ctx context.Context, wait bool, jobs []NewJob) ([]PutResult, error) {
	specs, err := q.specs(jobs)
	if err != nil || len(specs) == 0 {
		return nil, q.fail("put of a batch", err)
	}
	var res []PutResult
	var need int64 // new jobs in the batch, as the last try counted them
	err = q.withRoom(ctx, false, 1, func() error { return q.tryBatch(ctx, specs, &res, &need) })
	if errors.Is(err, ErrFull) && wait && need <= q.cfg.maxPending {
		err = q.withRoom(ctx, true, need, func() error { return q.tryBatch(ctx, specs, &res, &need) })
	}
	if err != nil {
		return nil, q.fail("put of a batch", err) // whatever is in res: it wasn't committed, or nobody knows
	}
	return res, nil
}

func (q *Queue) tryBatch(ctx context.Context, specs []*putSpec, res *[]PutResult, need *int64) error {
	return q.s.write(ctx, &op{sync: synced, rows: len(specs), run: func(t *txn) (err error) {
		*res, *need, err = q.putMany(t, specs)
		return err
	}})
}

func (q *Queue) specs(jobs []NewJob) ([]*putSpec, error) {
	specs := make([]*putSpec, len(jobs))
	for i, j := range jobs {
		var err error
		if specs[i], err = q.spec(j.Payload, j.Options); err != nil {
			return nil, fmt.Errorf("job %d of %d: %w", i, len(jobs), err)
		}
	}
	return specs, nil
}

// putMany stores a batch in a transaction. It says how many of the jobs are new, also when there is no room for them.
func (q *Queue) putMany(t *txn, specs []*putSpec) (res []PutResult, fresh int64, err error) {
	if q.cfg.maxPending > 0 {
		pending, err := t.q.Pending(context.Background(), q.name)
		if err != nil {
			return nil, 0, err
		}
		if fresh, err = q.countNew(t, specs); err != nil {
			return nil, 0, err
		}
		if fresh > 0 && pending+fresh > q.cfg.maxPending {
			return nil, fresh, fmt.Errorf("%w: %d pending and %d new, at most %d (WithMaxPending)", ErrFull, pending, fresh, q.cfg.maxPending)
		}
	}
	res = make([]PutResult, len(specs))
	for from := 0; from < len(specs); {
		upto := q.chunk(specs, from)
		if upto > from {
			err = q.putChunk(t, specs[from:upto], res[from:upto])
		} else {
			// A job that the batch statement doesn't serve: one statement for itself, in its place in the order.
			upto = from + 1
			unlimited := *q
			unlimited.cfg.maxPending = 0 // counted above
			res[from], err = unlimited.put(t, specs[from])
		}
		if err != nil {
			return nil, fresh, err
		}
		from = upto
	}
	return res, fresh, nil
}

// countNew counts the jobs of a batch that no held key stands for.
func (q *Queue) countNew(t *txn, specs []*putSpec) (int64, error) {
	seen := map[string]bool{}
	var fresh int64
	for _, s := range specs {
		if s.key != nil {
			if seen[*s.key] {
				continue
			}
			seen[*s.key] = true
			if _, err := q.holder(t, *s.key); err == nil {
				continue
			} else if !errors.Is(err, sql.ErrNoRows) {
				return 0, err
			}
		}
		fresh++
	}
	return fresh, nil
}

// chunk returns the end of the run from a job on that one statement can store: small, plain jobs with the same retries.
func (q *Queue) chunk(specs []*putSpec, from int) int {
	size, i := 0, from
	for ; i < len(specs) && i-from < chunkJobs; i++ {
		s := specs[i]
		size += len(s.payload)
		if !q.plain(s) || s.maxRetries != specs[from].maxRetries || size > chunkBytes {
			break
		}
	}
	return i
}

// plain tells whether the batch statement can store a job.
func (q *Queue) plain(s *putSpec) bool {
	aside := len(s.payload) > inlineLimit && !q.s.cfg.inline
	return s.delay == 0 && s.at == nil && s.priority == 0 && !s.pendingKey && s.headersJSON == nil && !aside
}

// putChunk stores a run of jobs with one statement: all payloads in one blob, cut by spans.
func (q *Queue) putChunk(t *txn, specs []*putSpec, res []PutResult) error {
	size, keyed := 0, false
	for _, s := range specs {
		size += len(s.payload)
		keyed = keyed || s.key != nil
	}
	blob := make([]byte, 0, max(size, 1))
	for _, s := range specs {
		blob = append(blob, s.payload...)
	}
	if len(blob) == 0 {
		blob = blob[:1] // substr of an empty blob is NULL, not empty
	}
	if keyed {
		return q.putKeyed(t, specs, blob, res)
	}
	result, err := t.q.PutMany(context.Background(), sqlite.PutManyParams{
		Queue: q.name, Payloads: blob, MaxAttempts: int64(specs[0].maxRetries) + 1, Now: t.now, Spans: spans(specs),
	})
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != int64(len(specs)) {
		err = fmt.Errorf("%w: %d rows for a batch of %d jobs", ErrIO, n, len(specs))
	}
	if err != nil {
		return err
	}
	last, err := result.LastInsertId()
	if err != nil {
		return err
	}
	for i := range res {
		res[i] = PutResult{ID: last - int64(len(res)-1-i)}
	}
	t.ring(forJobs, q.name, len(res))
	return nil
}

// spanBits is how much of a span is the payload's length; a chunk is smaller than that.
const spanBits = 25

// spans renders where each payload stands in the blob, as the numbers of the PutMany statement.
func spans(specs []*putSpec) string {
	b, offset := append(make([]byte, 0, 16*len(specs)), '['), 0
	for i, s := range specs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(offset)<<spanBits|int64(len(s.payload)), 10)
		offset += len(s.payload)
	}
	return string(append(b, ']'))
}

// putKeyed is putChunk for a run in which jobs have keys.
func (q *Queue) putKeyed(t *txn, specs []*putSpec, blob []byte, res []PutResult) error {
	spans, offset := append(make([]byte, 0, 32*len(specs)), '['), 1
	for i, s := range specs {
		if i > 0 {
			spans = append(spans, ',')
		}
		spans = strconv.AppendInt(append(spans, '['), int64(offset), 10)
		spans = strconv.AppendInt(append(spans, ','), int64(len(s.payload)), 10)
		if s.key != nil {
			key, err := json.Marshal(*s.key)
			if err != nil {
				return err
			}
			spans = append(append(spans, ','), key...)
		}
		spans = append(spans, ']')
		offset += len(s.payload)
	}
	rows, err := t.q.PutManyKeyed(context.Background(), sqlite.PutManyKeyedParams{
		Queue: q.name, Payloads: blob, MaxAttempts: int64(specs[0].maxRetries) + 1, Now: t.now, Spans: string(append(spans, ']')),
	})
	if err != nil {
		return err
	}
	t.ring(forJobs, q.name, len(rows))
	return q.matchRows(t, specs, rows, res)
}

// matchRows gives each job its id. RETURNING has no order, but ids rise in the order of the input; duplicates are missing
// from it.
func (q *Queue) matchRows(t *txn, specs []*putSpec, rows []sqlite.PutManyKeyedRow, res []PutResult) error {
	slices.SortFunc(rows, func(a, b sqlite.PutManyKeyedRow) int { return cmp.Compare(a.ID, b.ID) })
	next := 0
	held := map[string]int64{}
	for i, s := range specs {
		fits := next < len(rows) && (rows[next].JobID == nil) == (s.key == nil) && (s.key == nil || *rows[next].JobID == *s.key)
		switch {
		case fits:
			res[i] = PutResult{ID: rows[next].ID}
			if s.key != nil {
				held[*s.key] = rows[next].ID
			}
			next++
		case s.key == nil:
			return fmt.Errorf("%w: a job of the batch has no row", ErrIO)
		case held[*s.key] != 0:
			res[i] = PutResult{ID: held[*s.key], Duplicate: true}
		default:
			found, err := q.holder(t, *s.key)
			if err != nil {
				return err
			}
			res[i] = found
		}
	}
	return nil
}
