package archive

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"

	"github.com/localqueue/localqueue/queue"
)

// ExportOptions says what to export.
type ExportOptions struct {
	// Queue is the only queue; "" is all of them.
	Queue string
	// Progress is called now and then with the number of jobs written; it may be nil.
	Progress func(jobs int64)
}

// ExportResult is what an export has written.
type ExportResult struct {
	Name string // random, in the header: an import remembers by it what it has
	Jobs int64
}

// Export writes the jobs as JSON Lines, with a header before and a last line behind. It walks by id up to the highest one
// given when it begins, in short snapshots: each job is as it was at the moment of its page, and others go on meanwhile.
//
// Errors are those of reading the Store, ErrNoSuchQueue, queue.ErrInvalid for the queue's name, queue.ErrDiskFull, and what w returns.
func Export(ctx context.Context, s *queue.Store, w io.Writer, opts ExportOptions) (ExportResult, error) {
	e := &exporter{w: bufio.NewWriterSize(w, 256<<10), progress: opts.Progress}
	var err error
	if e.head, err = newHeader(ctx, s, opts.Queue); err == nil {
		err = e.line(e.head)
	}
	if err == nil {
		err = e.rest(ctx, s, 0)
	}
	return ExportResult{e.head.ID, e.jobs}, diskFull(err)
}

// exporter writes one export.
type exporter struct {
	w        *bufio.Writer
	head     *header
	jobs     int64
	progress func(int64)
}

func newHeader(ctx context.Context, s *queue.Store, only string) (*header, error) {
	v := version
	h := &header{Version: &v, ID: rand.Text(), CreatedAt: instant{s.Now()}, Queue: orNull(only), Queues: []settings{}}
	if only != "" {
		if _, err := s.Queue(only); err != nil {
			return h, err
		}
	}
	var err error
	if h.Source, err = s.Identity(ctx); err != nil {
		return h, err
	}
	ids, err := s.IDs(ctx)
	if err != nil {
		return h, err
	}
	h.FirstID, h.LastID = ids.First, ids.Last
	all, err := s.Queues(ctx)
	if err != nil {
		return h, err
	}
	for _, q := range all {
		if only != "" && q.Queue != only {
			continue
		}
		set := settings{Queue: q.Queue, Paused: q.Paused}
		if q.KeepAcked != nil {
			ms := q.KeepAcked.Milliseconds()
			set.KeepAckedMS = &ms
		}
		h.Queues = append(h.Queues, set)
	}
	if only != "" && len(h.Queues) == 0 {
		return h, fmt.Errorf("%w: %q has neither jobs nor settings in %s", ErrNoSuchQueue, only, s.Dir())
	}
	return h, nil
}

// rest writes the jobs above an id, and the end.
func (e *exporter) rest(ctx context.Context, s *queue.Store, after int64) error {
	if e.head.LastID > 0 { // 0 would mean: up to whatever there is by now
		for job, err := range s.Export(ctx, queue.ExportOptions{Queue: deref(e.head.Queue), After: after, Upto: e.head.LastID}) {
			if err != nil {
				return err
			}
			text, err := encodeJob(job)
			if err != nil {
				return fmt.Errorf("export of job %d: %w", job.ID, err)
			}
			if _, err := e.w.Write(text); err != nil {
				return err
			}
			if e.jobs++; e.progress != nil && e.jobs%100 == 0 {
				e.progress(e.jobs)
			}
		}
	}
	v := version
	if err := e.line(trailer{End: &v, Jobs: e.jobs}); err != nil {
		return err
	}
	if e.progress != nil {
		e.progress(e.jobs)
	}
	return e.w.Flush()
}

func (e *exporter) line(v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	_, err = e.w.Write(text)
	return err
}
