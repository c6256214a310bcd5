package queue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/localqueue/localqueue/db/sqlite"
)

// ListOptions chooses a page.
type ListOptions struct {
	Limit int    // records in the page; 0 is 100, at most 1000
	After string // the Next of the page before; "" is the first page
}

// Page is a part of a list.
type Page struct {
	Records []Record
	Next    string // "" after the last page
}

// cursor is where a page ended, in the order of its index.
type cursor struct {
	Queue string `json:"q"`
	State State  `json:"s"`
	Key   int64  `json:"k"` // priority or time
	ID    int64  `json:"i"`
}

// List pages through the jobs of one state without changing them: ready in the order of claiming, delayed by the time
// they fall due, leased by the end of the lease, acked by the time of settling, failed by id. Pages are as fast at a
// million jobs as at ten. A bad cursor is ErrInvalid.
func (q *Queue) List(ctx context.Context, state State, opts ListOptions) (page Page, err error) {
	defer func() { err = q.fail("list", err) }()
	if opts.Limit < 0 || opts.Limit > 1000 {
		return page, invalid("limit %d: must be between 1 and 1000", opts.Limit)
	}
	limit := cmp.Or(opts.Limit, 100)
	from, err := q.cursor(state, opts.After)
	if err != nil {
		return page, err
	}
	rows, err := q.listRows(ctx, state, from, int64(limit)+1)
	if err != nil {
		return page, q.s.readError(ctx, err)
	}
	more := len(rows) > limit
	rows = rows[:min(limit, len(rows))]
	for _, r := range rows {
		page.Records = append(page.Records, record(r))
	}
	if more {
		page.Next = encodeCursor(q.name, state, rows[len(rows)-1])
	}
	return page, nil
}

// All walks through List page by page.
func (q *Queue) All(ctx context.Context, state State) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for after := ""; ; {
			page, err := q.List(ctx, state, ListOptions{After: after})
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, r := range page.Records {
				if !yield(r, nil) {
					return
				}
			}
			if after = page.Next; after == "" {
				return
			}
		}
	}
}

func (q *Queue) listRows(ctx context.Context, state State, from cursor, n int64) ([]sqlite.Job, error) {
	r := q.s.read
	switch state {
	case Ready:
		return r.ListReady(ctx, sqlite.ListReadyParams{Queue: q.name, Priority: from.Key, AfterID: from.ID, N: n})
	case Delayed:
		return r.ListDelayed(ctx, sqlite.ListDelayedParams{Queue: q.name, AfterTime: from.Key, AfterID: from.ID, N: n})
	case Leased:
		return r.ListLeased(ctx, sqlite.ListLeasedParams{Queue: q.name, AfterTime: from.Key, AfterID: from.ID, N: n})
	case Acked:
		return r.ListAcked(ctx, sqlite.ListAckedParams{Queue: q.name, AfterTime: from.Key, AfterID: from.ID, N: n})
	}
	return r.ListFailed(ctx, sqlite.ListFailedParams{Queue: q.name, AfterID: from.ID, N: n})
}

func (q *Queue) cursor(state State, after string) (cursor, error) {
	c := cursor{Queue: q.name, State: state, Key: math.MinInt64}
	if state == Ready {
		c.Key = math.MaxInt64
	}
	if _, _, ok := state.stored(); !ok {
		return c, invalid("state %q: use ready, delayed, leased, acked or failed", string(state))
	}
	if after == "" {
		return c, nil
	}
	var got cursor
	text, err := base64.RawURLEncoding.DecodeString(after)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || got.Queue != q.name || got.State != state {
		return c, invalid("cursor %q is not one of this list", cutText(after, 80))
	}
	return got, nil
}

func encodeCursor(queue string, state State, last sqlite.Job) string {
	c := cursor{Queue: queue, State: state, ID: last.ID}
	switch state {
	case Ready:
		c.Key = last.Priority
	case Delayed:
		c.Key = last.AvailableAt
	case Leased:
		c.Key = deref(last.LeaseUntil)
	case Acked:
		c.Key = last.UpdatedAt
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "" // a struct of strings and numbers always encodes
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// Show returns a job in whatever state, with its failed deliveries, oldest first. ErrNotFound if this queue has none of
// that id.
func (q *Queue) Show(ctx context.Context, id int64) (*Record, []Delivery, error) {
	return q.show(ctx, fmt.Sprintf("job %d", id), func(r *sqlite.Queries) (sqlite.Job, error) {
		return r.Job(ctx, sqlite.JobParams{ID: id, Queue: q.name})
	})
}

// ShowKey is Show for the newest job that was put under a job_id.
func (q *Queue) ShowKey(ctx context.Context, jobID string) (*Record, []Delivery, error) {
	return q.show(ctx, fmt.Sprintf("job_id %q", jobID), func(r *sqlite.Queries) (sqlite.Job, error) {
		return r.JobByKey(ctx, sqlite.JobByKeyParams{Queue: q.name, JobID: jobID})
	})
}

func (q *Queue) show(ctx context.Context, what string, find func(*sqlite.Queries) (sqlite.Job, error)) (*Record, []Delivery, error) {
	var rec Record
	var story []Delivery
	err := q.s.view(ctx, func(r *sqlite.Queries) error {
		row, err := find(r)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: this queue has no %s", ErrNotFound, what)
		}
		if err != nil {
			return err
		}
		rec = record(row)
		rows, err := r.History(ctx, row.ID)
		for _, h := range rows {
			story = append(story, Delivery{Number: h.Delivery, Attempt: int(h.Attempt), Start: fromMillis(h.StartedAt), End: fromMillis(max(h.StartedAt, h.EndedAt)),
				Outcome: h.Outcome, Error: deref(h.Error), Worker: deref(h.Worker)})
		}
		return err
	})
	if err != nil {
		return nil, nil, q.fail("show", err)
	}
	return &rec, story, nil
}

func record(r sqlite.Job) Record {
	rec := Record{
		ID: r.ID, Queue: r.Queue, State: stateOf(r.Status, r.Delayed), JobID: deref(r.JobID), Pending: r.KeyScope == 1,
		Payload: notNil(r.Payload), Headers: decodeHeaders(r.Headers), Priority: clampPriority(r.Priority), Attempts: int(r.Attempts),
		MaxAttempts: int(r.MaxAttempts), Delivery: r.Delivery, LastError: deref(r.LastError), Receipt: deref(r.Receipt),
		AvailableAt: fromMillis(r.AvailableAt), ClaimedBy: deref(r.ClaimedBy), CreatedAt: fromMillis(r.CreatedAt), UpdatedAt: fromMillis(r.UpdatedAt),
	}
	if r.LeaseUntil != nil {
		rec.LeaseUntil = fromMillis(*r.LeaseUntil)
	}
	if r.ClaimedAt != nil {
		rec.ClaimedAt = fromMillis(*r.ClaimedAt)
	}
	if rec.State == Failed {
		rec.Reason = reasonOf(r.Reason)
	}
	return rec
}
