package queue

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/localqueue/localqueue/db/sqlite"
)

// Archived is a job with everything that the file knows of it: what Export reads and an Import stores. Package archive
// writes and reads them as JSON Lines.
type Archived struct {
	Record
	History []Delivery // its failed deliveries, oldest first
}

// IDRange is which ids a file's jobs have.
type IDRange struct {
	First int64 // the lowest id of a job that is there; above Last if there is none
	Last  int64 // the highest id ever given; 0 if none was
}

// IDs says which ids the file's jobs have, of all queues.
func (s *Store) IDs(ctx context.Context) (ids IDRange, err error) {
	err = s.view(ctx, func(r *sqlite.Queries) error {
		ids, err = idRange(r)
		return err
	})
	if err != nil {
		return ids, fmt.Errorf("ids in %s: %w", s.dir, err)
	}
	return ids, nil
}

// Identity tells the file from all others: 32 hexadecimal digits, by chance. A backup or a copy of it has the same.
func (s *Store) Identity(ctx context.Context) (id string, err error) {
	err = s.view(ctx, func(r *sqlite.Queries) error {
		id, err = r.Identity(context.Background())
		return err
	})
	if err != nil {
		return "", fmt.Errorf("identity of %s: %w", s.dir, err)
	}
	return id, nil
}

func idRange(r *sqlite.Queries) (ids IDRange, err error) {
	ctx := context.Background()
	if ids.Last, err = r.LastID(ctx); err != nil {
		return ids, err
	}
	ids.First = ids.Last + 1
	first, err := r.ExportPage(ctx, sqlite.ExportPageParams{After: 0, Upto: math.MaxInt64, N: 1})
	if len(first) > 0 {
		ids.First = first[0].ID
	}
	return ids, err
}

// ExportOptions chooses what Export reads.
type ExportOptions struct {
	Queue string // the only queue; "" is all of them
	After int64  // only jobs with a higher id: where an earlier export ended
	Upto  int64  // only jobs up to this id; 0 is the highest one given when the export begins
}

// A page of an export is one snapshot: at most so many jobs, and bytes of payload unless a single job has more.
const (
	exportRows  = 200
	exportBytes = 1 << 20
)

// Export walks through the jobs by id, in whatever state, with their history. It takes no lock and changes nothing. It reads
// in pages, each in a snapshot of its own, which is over before its jobs are handed on: every job is as it was at the moment
// of its page. Jobs removed meanwhile are left out, jobs put after the beginning too.
func (s *Store) Export(ctx context.Context, opts ExportOptions) iter.Seq2[Archived, error] {
	return func(yield func(Archived, error) bool) {
		fail := func(err error) { yield(Archived{}, fmt.Errorf("export from %s: %w", s.dir, err)) }
		if opts.Queue != "" {
			if err := checkQueueName(opts.Queue); err != nil {
				fail(err)
				return
			}
		}
		if opts.Upto == 0 {
			ids, err := s.IDs(ctx)
			if err != nil {
				fail(err)
				return
			}
			opts.Upto = ids.Last
		}
		for opts.After < opts.Upto {
			jobs, last, err := s.exportPage(ctx, opts)
			if err != nil {
				fail(err)
				return
			}
			for _, j := range jobs {
				if !yield(j, nil) {
					return
				}
			}
			opts.After = last
		}
	}
}

// exportPage reads the next page. last is where it ends: the end of the range, if no more jobs are in it.
func (s *Store) exportPage(ctx context.Context, o ExportOptions) (jobs []Archived, last int64, err error) {
	err = s.view(ctx, func(r *sqlite.Queries) error {
		if last, err = pageEnd(ctx, r, o); err != nil {
			return err
		}
		rows, err := r.ExportJobs(ctx, sqlite.ExportJobsParams{After: o.After, Upto: last, Queue: o.Queue})
		if err != nil {
			return err
		}
		story, err := r.ExportHistory(ctx, sqlite.ExportHistoryParams{After: o.After, Upto: last})
		if err != nil {
			return err
		}
		for _, row := range rows {
			jobs = append(jobs, archived(row))
		}
		i := 0
		for _, h := range story { // both are in the order of ids
			for i < len(jobs) && jobs[i].ID < h.MessageID {
				i++
			}
			if i < len(jobs) && jobs[i].ID == h.MessageID {
				jobs[i].History = append(jobs[i].History, Delivery{Number: h.Delivery, Attempt: int(h.Attempt), Start: fromMillis(h.StartedAt),
					End: fromMillis(h.EndedAt), Outcome: h.Outcome, Error: deref(h.Error), Worker: deref(h.Worker)})
			}
		}
		return nil
	})
	return jobs, last, err
}

func pageEnd(ctx context.Context, r *sqlite.Queries, o ExportOptions) (last int64, err error) {
	rows, err := r.ExportPage(ctx, sqlite.ExportPageParams{After: o.After, Upto: o.Upto, N: exportRows})
	if err != nil {
		return 0, err
	}
	last = o.After
	for size := int64(0); len(rows) > 0; rows = rows[1:] {
		if o.Queue == "" || rows[0].Queue == o.Queue {
			if size += rows[0].Size; size > exportBytes && size > rows[0].Size {
				return last, nil
			}
		}
		if last = rows[0].ID; len(rows) == 1 {
			return last, nil
		}
	}
	return o.Upto, nil
}

func archived(row sqlite.Job) Archived {
	a := Archived{Record: record(row)}
	// The original claims without a number; the next claim of ours would count on from its attempts.
	a.Delivery = max(a.Delivery, row.Attempts)
	return a
}
