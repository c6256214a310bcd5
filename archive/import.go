package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// ImportOptions says how to import.
type ImportOptions struct {
	// Name tells this input from all others: the queue remembers by it which lines are in. An export has a name of its own,
	// used where this is empty; lines from elsewhere need one. The same export under another name comes in once more.
	Name string
	// Queue takes the jobs of lines that name no queue. "" is queue.DefaultQueue. Once it has taken one, a repeat with another
	// one is refused.
	Queue string
	// Progress is called after each batch with what is done so far; it may be nil.
	Progress func(ImportResult)
}

// ImportResult is what an import has done.
type ImportResult struct {
	Name       string
	Lines      int64 // of the input that are in, with those of earlier runs
	Earlier    int64 // of these, what earlier runs of the same import have brought
	Stored     int   // jobs of this run
	Duplicates int   // jobs of this run that were left out: another job of the queue holds their job_id
	KeptIDs    bool  // the jobs have the ids of the export; else new ones
}

// Import stores the jobs of an export, or lines made elsewhere (see the package's text for both), in batches. Ids are kept
// where the Store has no job and has given none of these ids before; else each job gets a new one. Settings are taken on
// for queues that the Store doesn't know.
//
// An import may end at any moment, by an error, ctx or the end of the process: what it has stored stays, and the same import
// again goes on behind it. It stores nothing twice, whether jobs have a job_id or not. A line whose job_id another job of
// the queue holds, as Put would find, is left out and counted.
//
// Errors: a [LineError] (what comes before the line is stored), ErrTruncated (everything that is there is stored),
// ErrUnnamed, ErrVersion, ErrSameSource (an export of the same Store without ImportOptions.Name), ErrOtherInput and
// queue.ErrImportQueue (nothing was changed by these), queue.ErrImportMoved, those of [queue.Queue.Put], and what r
// returns.
func Import(ctx context.Context, s *queue.Store, r io.Reader, opts ImportOptions) (ImportResult, error) {
	m := &importer{in: newLines(r, s.Default().MaxPayload()), opts: opts}
	err := m.run(ctx, s)
	return m.res, err
}

type importer struct {
	in      *lines
	opts    ImportOptions
	im      *queue.Import
	head    *header // nil: lines from elsewhere
	end     *trailer
	jobs    int64 // in the lines done with
	pending int   // jobs in the batch
	res     ImportResult
}

func (m *importer) run(ctx context.Context, s *queue.Store) error {
	first, err := m.in.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := m.begin(ctx, s, first); err != nil {
		return err
	}
	for line := first; err == nil; line, err = m.in.next() {
		if err = ctx.Err(); err != nil {
			return fmt.Errorf("import: %w", err)
		}
		if err = m.take(ctx, line); err != nil {
			break
		}
	}
	return m.finish(ctx, err)
}

// begin finds out what the input is, and how much of it is in.
func (m *importer) begin(ctx context.Context, s *queue.Store, first []byte) (err error) {
	if m.head, err = decodeHeader(first); err != nil {
		return &LineError{1, err}
	}
	o := queue.ImportOptions{Name: m.opts.Name, Queue: cmp.Or(m.opts.Queue, queue.DefaultQueue)}
	if _, err := s.Queue(o.Queue); err != nil {
		return err
	}
	if m.head != nil {
		if err := m.refuseOwn(ctx, s); err != nil {
			return err
		}
		o.Name = cmp.Or(o.Name, m.head.ID)
		o.IDs = queue.IDRange{First: m.head.FirstID, Last: m.head.LastID}
		for _, q := range m.head.Queues {
			o.Settings = append(o.Settings, q.stored())
		}
	}
	if o.Name == "" {
		return fmt.Errorf("%w: its first line is no header of one; give lines from elsewhere a name, under which a repeat goes on where this ends", ErrUnnamed)
	}
	m.im, err = s.BeginImport(ctx, o)
	if err != nil && m.head != nil && m.opts.Name == "" && errors.Is(err, queue.ErrInvalid) {
		return &LineError{1, err}
	}
	if err != nil {
		return err
	}
	m.res = ImportResult{Name: o.Name, Earlier: m.im.Mark().Lines, Lines: m.im.Mark().Lines, KeptIDs: m.im.KeepsIDs()}
	return nil
}

// refuseOwn keeps an export out of the file it was made of, unless it is named: its jobs are there, and have no keys as a rule.
func (m *importer) refuseOwn(ctx context.Context, s *queue.Store) error {
	if m.opts.Name != "" {
		return nil
	}
	here, err := s.Identity(ctx)
	if err == nil && m.head.Source == here {
		err = fmt.Errorf("%w: it would store a second copy of each job; import it into another directory, or with a name if copies are meant", ErrSameSource)
	}
	return err
}

func (s settings) stored() queue.QueueSettings {
	q := queue.QueueSettings{Queue: s.Queue, Paused: s.Paused}
	if s.KeepAckedMS != nil {
		const most = math.MaxInt64 / int64(time.Millisecond)
		keep := time.Duration(max(-1, min(*s.KeepAckedMS, most))) * time.Millisecond
		q.KeepAcked = &keep
	}
	return q
}

// take does what a line asks for.
func (m *importer) take(ctx context.Context, line []byte) error {
	if m.in.number <= m.res.Earlier {
		return m.skip(line)
	}
	full, err := m.add(line)
	if err != nil {
		return &LineError{m.in.number, err}
	}
	m.in.done(line)
	if full {
		return m.commit(ctx)
	}
	return nil
}

// holdsJob says whether a line should be a job: all but the header and blank ones.
func (m *importer) holdsJob(line []byte) bool {
	return (m.in.number > 1 || m.head == nil) && len(bytes.TrimSpace(line)) > 0
}

// skip passes over a line that is in. Where the last of them has passed, all must be the lines that were imported.
func (m *importer) skip(line []byte) error {
	m.in.done(line)
	if m.holdsJob(line) {
		m.jobs++
	}
	if m.in.number < m.res.Earlier {
		return nil
	}
	if m.in.digest() != m.im.Mark().Digest {
		return fmt.Errorf("%w: %d lines are in under the name %q, and these differ from them; under another name all of this input is imported, those lines once more", ErrOtherInput, m.res.Earlier, m.res.Name)
	}
	if _, end, err := decodeJob(line); err == nil && end != nil && m.holdsJob(line) {
		m.end = end
		m.jobs--
	}
	return nil
}

// add takes a new line's job into the batch.
func (m *importer) add(line []byte) (full bool, err error) {
	if !m.holdsJob(line) {
		return false, nil
	}
	if m.end != nil {
		return false, errors.New("a line after the end of the export")
	}
	job, end, err := decodeJob(line)
	if err != nil {
		return false, err
	}
	if end != nil {
		if end.Jobs != m.jobs {
			return false, fmt.Errorf("%w: it had %d jobs, here are %d", ErrTruncated, end.Jobs, m.jobs)
		}
		m.end = end
		return false, nil
	}
	if full, err = m.im.Add(job); err == nil {
		m.jobs++
		m.pending++
	}
	return full, err
}

// commit stores what is in the batch. The lines done with are the mark.
func (m *importer) commit(ctx context.Context) error {
	done, err := m.im.Commit(ctx, queue.Mark{Lines: m.in.finished, Digest: m.in.digest()})
	if err != nil {
		return err
	}
	m.pending = 0
	m.res.Lines, m.res.KeptIDs = m.im.Mark().Lines, m.im.KeepsIDs()
	m.res.Stored += done.Stored
	m.res.Duplicates += done.Duplicates
	if m.opts.Progress != nil {
		m.opts.Progress(m.res)
	}
	return nil
}

// finish stores the rest, also of an input that is broken further on, and tells how it ended.
func (m *importer) finish(ctx context.Context, err error) error {
	line := (*LineError)(nil)
	switch {
	case errors.Is(err, io.EOF):
		err = nil
		if m.in.number < m.res.Earlier {
			return fmt.Errorf("%w: %d lines are in under the name %q, and this has only %d; under another name all of it is imported once more", ErrOtherInput, m.res.Earlier, m.res.Name, m.in.number)
		}
		if m.head != nil && m.end == nil {
			err = fmt.Errorf("%w: it is cut off after line %d; what it has is stored: repeat the import with the whole of it", ErrTruncated, m.in.number)
		}
	case !errors.As(err, &line) && !errors.As(err, new(*readError)):
		return err
	}
	if err != nil && m.pending == 0 {
		return err
	}
	if failed := m.commit(context.WithoutCancel(ctx)); failed != nil { // an interrupted reader too has given what it gave
		return failed
	}
	return err
}
