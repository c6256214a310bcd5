package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/localqueue/localqueue/db/sqlite"
)

// maxClaim bounds one claim, in jobs.
const maxClaim = 1000

// Get claims the next job: the highest priority, then the lowest id, of those that are due. It waits for one until ctx
// ends; the error then matches ctx's own. If it ended while another writer held the file, it matches ErrBusy too: a lock
// is never reported as an empty queue. Other errors: ErrClosed, and those of the file.
func (q *Queue) Get(ctx context.Context) (*Job, error) {
	return first(q.get(ctx, 1, true))
}

// TryGet is Get that fails with ErrEmpty at once where Get would wait.
func (q *Queue) TryGet(ctx context.Context) (*Job, error) {
	return first(q.get(ctx, 1, false))
}

// GetMany claims up to n jobs (at most 1000 at a time) as soon as any is there, in order. Each has a lease of its own.
func (q *Queue) GetMany(ctx context.Context, n int) ([]*Job, error) {
	return q.get(ctx, n, true)
}

// TryGetMany is GetMany that fails with ErrEmpty at once where GetMany would wait.
func (q *Queue) TryGetMany(ctx context.Context, n int) ([]*Job, error) {
	return q.get(ctx, n, false)
}

func first(jobs []*Job, err error) (*Job, error) {
	if err != nil {
		return nil, err
	}
	return jobs[0], nil
}

func (q *Queue) get(ctx context.Context, n int, wait bool) (_ []*Job, err error) {
	defer func() { err = q.fail("get", err) }()
	if n < 1 {
		return nil, invalid("%d jobs asked for: at least 1", n)
	}
	n = min(n, maxClaim)
	jobs, err := q.claim(ctx, n)
	if err != nil || len(jobs) > 0 {
		return jobs, err
	}
	if !wait {
		return nil, ErrEmpty
	}
	b := q.s.bells
	w := b.subscribe(bellKey{forJobs, q.name})
	defer func() { b.leave(w, len(jobs) > 0) }()
	for {
		// Subscribed before it looks: a put between the two is not missed.
		if jobs, err = q.claim(ctx, n); err != nil || len(jobs) > 0 {
			return jobs, err
		}
		if err = b.wait(ctx, w); err != nil {
			return nil, err
		}
		if w.rung && !w.passOn { // for a job that is there: no need to look first
			q.hot.Store(true)
		}
	}
}

// claim takes up to n jobs, or none. After a claim that found nothing it looks first: an idle poll takes no write lock.
func (q *Queue) claim(ctx context.Context, n int) ([]*Job, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-q.s.closing:
		return nil, ErrClosed
	default:
	}
	if !q.hot.Load() {
		o, err := q.s.read.Outlook(context.Background(), q.name)
		if err != nil {
			return nil, q.s.readError(ctx, err)
		}
		if !claimable(o.Ready, o.NextDue, o.NextLeaseEnd, o.Paused, q.s.nowMillis()) {
			return nil, q.s.file.check()
		}
	}
	var jobs []*Job // the leader's to give back, if the caller leaves
	err := q.s.write(ctx, &op{sync: unsynced, rows: n, claim: &claimOp{q, n, &jobs}, run: func(t *txn) (err error) {
		jobs, err = q.claimIn(t, n)
		return err
	}})
	q.hot.Store(err == nil && len(jobs) > 0)
	if err != nil {
		return nil, err // whatever was found is given back, or its claim wasn't committed
	}
	return jobs, nil
}

func (q *Queue) claimIn(t *txn, n int) ([]*Job, error) {
	ctx := context.Background()
	t.look = true // the end of this lease may be what falls due next for those that wait
	if n < manyClaims {
		var jobs []*Job
		for len(jobs) < n {
			job, err := q.claimNext(t)
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, job)
		}
		if len(jobs) > 0 {
			return jobs, nil
		}
	}
	// Nothing claimable, or something due or ended must come first.
	o, err := t.q.Outlook(ctx, q.name)
	if err != nil {
		return nil, err
	}
	if o.Paused != 0 {
		o.NextDue = 0 // leases end while the queue is paused; nothing is promoted
	}
	if err := q.bringIn(t, o.NextDue, o.NextLeaseEnd); err != nil {
		return nil, err
	}
	if o.Paused != 0 {
		return nil, nil
	}
	rows, err := t.q.ClaimMany(ctx, sqlite.ClaimManyParams{Now: t.now, Lease: millis(q.cfg.lease), Worker: q.s.worker, Queue: q.name, N: int64(n)})
	if err != nil {
		return nil, err
	}
	jobs := make([]*Job, len(rows))
	for i, row := range rows {
		jobs[i] = q.job(row)
	}
	slices.SortFunc(jobs, func(a, b *Job) int { // RETURNING has no order
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return jobs, nil
}

// claimNext takes one job, or none (sql.ErrNoRows).
func (q *Queue) claimNext(t *txn) (*Job, error) {
	ctx := context.Background()
	next, err := t.q.Next(ctx, sqlite.NextParams{Queue: q.name, Now: t.now})
	if err != nil {
		return nil, err
	}
	row := sqlite.ClaimManyRow{
		ID: next.ID, Receipt: newReceipt(next.Delivery), Attempts: next.Attempts + 1, MaxAttempts: next.MaxAttempts, Delivery: next.Delivery,
		Priority: next.Priority, JobID: next.JobID, Headers: next.Headers, LastError: next.LastError, CreatedAt: next.CreatedAt,
		LeaseUntil: t.now + millis(q.cfg.lease), Payload: next.Payload,
	}
	n, err := t.q.Claim(ctx, sqlite.ClaimParams{
		Delivery: row.Delivery, Receipt: row.Receipt, LeaseUntil: row.LeaseUntil, Now: t.now, Worker: q.s.worker, ID: row.ID, Queue: q.name,
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: job %d was ready and could not be claimed", ErrIO, row.ID)
	}
	return q.job(row), err
}

// newReceipt names a delivery: its number, which only grows, and 128 random bits.
func newReceipt(delivery int64) string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	b := append(strconv.AppendInt(make([]byte, 0, 52), delivery, 10), '-')
	return string(hex.AppendEncode(b, random[:]))
}

func (q *Queue) job(r sqlite.ClaimManyRow) *Job {
	return &Job{
		ID: r.ID, Queue: q.name, JobID: deref(r.JobID), Payload: notNil(r.Payload), Headers: decodeHeaders(r.Headers),
		Priority: clampPriority(r.Priority), Attempt: int(r.Attempts), MaxAttempts: int(r.MaxAttempts), Delivery: r.Delivery,
		Receipt: r.Receipt, EnqueuedAt: fromMillis(r.CreatedAt), LeaseUntil: fromMillis(r.LeaseUntil), LastError: deref(r.LastError),
		queue: q,
	}
}

// decodeHeaders reads what Put has written; headers that another writer garbled are left out, not the job.
func decodeHeaders(text *string) map[string]string {
	if text == nil {
		return nil
	}
	var h map[string]string
	if json.Unmarshal([]byte(*text), &h) != nil {
		return nil
	}
	return h
}

// clampPriority: the column is wider than an int16, and other writers may use that.
func clampPriority(p int64) int16 { return int16(max(-1<<15, min(p, 1<<15-1))) }

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
