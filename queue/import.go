package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// Mark is how far an import has come.
type Mark struct {
	Lines  int64  // of the input that are in, from its top
	Digest string // of those lines, as the caller computes it
}

// QueueSettings are what is stored of a queue beside its jobs.
type QueueSettings struct {
	Queue     string
	Paused    bool
	KeepAcked *time.Duration // nil: until purged
}

// ImportOptions says what is imported.
type ImportOptions struct {
	// Name tells this import from all others: the file remembers how far each has come. 1 to 255 bytes of UTF-8 without
	// control characters.
	Name string
	// Queue takes the jobs that name none, and is remembered once one has come: with another one the import doesn't go on.
	// "": each job has to name its queue.
	Queue string
	// Settings are taken on for queues that the file doesn't know yet.
	Settings []QueueSettings
	// IDs is where the jobs' ids are, at most 2^53-1. They are kept if the file has no job and has given none of these ids
	// before, and none is above 2^52: an id is never given twice, and there must be room for those to come. Otherwise, and
	// with the zero IDRange, each job gets a new id.
	IDs IDRange
}

// Import stores jobs in whatever state they are, in batches, each in one transaction together with a mark: an import which
// was broken off, at any moment, goes on at its mark. It is for one goroutine. After an error of Commit, begin anew.
//
// WithMaxPending doesn't hold it up.
type Import struct {
	s     *Store
	opts  ImportOptions
	mark  Mark // what is in the file
	begun bool // the file knows of it
	keeps bool
	last  int64   // the highest id added
	queue *string // where jobs have gone that named none

	batch  []importJob
	rows   int // that the batch will write
	bytes  int
	stride *stride
}

// A batch is full at this size, or earlier if the last one took long.
const (
	importRows  = 500
	importBytes = 1 << 20
)

// BeginImport starts an import, or goes on with the one of that name: its Mark says where. Nothing is written yet. Errors:
// ErrInvalid for the options, ErrImportQueue, those of reading.
func (s *Store) BeginImport(ctx context.Context, opts ImportOptions) (*Import, error) {
	im := &Import{s: s, opts: opts, stride: newStride()}
	if err := im.checkOptions(); err != nil {
		return nil, im.fail(err)
	}
	err := s.view(ctx, func(r *sqlite.Queries) error {
		known, err := r.Imported(ctx, opts.Name)
		if errors.Is(err, sql.ErrNoRows) {
			im.keeps, err = im.mayKeepIDs(r) // asked again in the first transaction
			return err
		}
		if err == nil && known.Queue != nil && *known.Queue != opts.Queue {
			err = fmt.Errorf("%w: its jobs that name none went to %q, not %q; name that one again", ErrImportQueue, *known.Queue, opts.Queue)
		}
		im.mark, im.keeps, im.begun, im.queue = Mark{known.Lines, known.Digest}, known.KeepsIds != 0, true, known.Queue
		return err
	})
	return im, im.fail(err)
}

// Mark is how far the import had come at its last commit, here or in an earlier run.
func (im *Import) Mark() Mark { return im.mark }

// KeepsIDs says whether jobs keep their ids. Before the first Commit it is a guess: others may put jobs meanwhile.
func (im *Import) KeepsIDs() bool { return im.keeps }

func (im *Import) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("import %q into %s: %w", im.opts.Name, im.s.dir, err)
}

// Add checks a job and takes it into the next batch. full says that the batch should be committed now. Zero values: State
// is delayed if AvailableAt is to come, else ready; CreatedAt and UpdatedAt are now, AvailableAt is CreatedAt, MaxAttempts
// what the Store gives new jobs, Delivery is Attempts.
//
// A leased job stays leased until its lease ends. Its receipt holds it here too if ids are kept: whoever works on it can
// settle it here instead of there. Otherwise nobody holds it, and it is delivered again when the lease ends.
//
// A job that couldn't be there is refused, with ErrInvalid or ErrPayloadTooLarge, and those before it are unharmed.
func (im *Import) Add(job Archived) (full bool, err error) {
	unnamed := job.Queue == "" && im.opts.Queue != ""
	if unnamed {
		job.Queue = im.opts.Queue
	}
	j, err := im.prepare(job)
	if err != nil {
		return false, err
	}
	if unnamed {
		im.queue = &im.opts.Queue
	}
	im.last = job.ID
	im.batch = append(im.batch, j)
	im.rows += 1 + len(j.history)
	im.bytes += len(j.payload) + j.row.size()
	return im.rows >= min(im.stride.rows, importRows) || im.bytes >= importBytes, nil
}

// Imported is what became of a batch.
type Imported struct {
	Stored     int
	Duplicates int // left out: another job of the queue holds their job_id
}

// Commit stores the batch, and the mark behind it. A job whose job_id another one of its queue holds, as Put would find, is
// left out. Receivers are woken. Errors: ErrImportMoved, and those of [Queue.Put].
func (im *Import) Commit(ctx context.Context, mark Mark) (res Imported, err error) {
	if len(im.batch) == 0 && mark == im.mark {
		return res, nil
	}
	err = im.s.write(ctx, &op{sync: synced, alone: true, rows: im.rows, run: func(t *txn) error {
		return im.stride.timed(func() error {
			res, err = im.store(t, mark)
			return err
		})
	}})
	if err != nil {
		return Imported{}, im.fail(err)
	}
	clear(im.batch)
	im.mark, im.begun, im.batch, im.rows, im.bytes = mark, true, im.batch[:0], 0, 0
	return res, nil
}

// store is the transaction of a batch.
func (im *Import) store(t *txn, mark Mark) (res Imported, err error) {
	if !im.begun {
		if err := im.begin(t); err != nil {
			return res, err
		}
	}
	for i := range im.batch {
		stored, err := im.put(t, &im.batch[i])
		if err != nil {
			return res, err
		}
		if stored {
			res.Stored++
		} else {
			res.Duplicates++
		}
	}
	passing(inImport)
	if plantedMarkless() {
		return res, nil
	}
	n, err := t.q.AdvanceImport(context.Background(), sqlite.AdvanceImportParams{
		Name: im.opts.Name, Lines: mark.Lines, Digest: mark.Digest, Now: t.now, FromLines: im.mark.Lines, FromDigest: im.mark.Digest, Queue: im.queue,
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: another process has gone on with it since line %d; when that is done, repeat the import to see that all is in", ErrImportMoved, im.mark.Lines)
	}
	return res, err
}

// begin notes the import, decides about the ids, and takes on the settings.
func (im *Import) begin(t *txn) error {
	ctx := context.Background()
	keeps, err := im.mayKeepIDs(t.q)
	if err != nil {
		return err
	}
	if keeps = keeps && im.keeps; !keeps { // others may have put jobs since BeginImport
		im.giveNewIDs()
	}
	if err := t.q.BeginImport(ctx, sqlite.BeginImportParams{Name: im.opts.Name, KeepsIds: asInt(keeps), Now: t.now}); err != nil {
		return err
	}
	if keeps {
		n, err := t.q.ReserveIDs(ctx, im.opts.IDs.Last)
		if err == nil && n == 0 {
			err = t.q.BeginIDs(ctx, im.opts.IDs.Last)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range im.opts.Settings {
		p := sqlite.ImportSettingsParams{Queue: s.Queue, Paused: asInt(s.Paused)}
		if s.KeepAcked != nil {
			ms := millis(*s.KeepAcked)
			p.KeepAcked = &ms
		}
		if err := t.q.ImportSettings(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// giveNewIDs is for a batch that was prepared to keep its ids.
func (im *Import) giveNewIDs() {
	im.keeps = false
	for i := range im.batch {
		row := &im.batch[i].row
		if row.ID = nil; row.Status == statusLeased {
			row.Receipt = orNull(newReceipt(row.Delivery)) // that nobody has
		}
	}
}

func (im *Import) mayKeepIDs(r *sqlite.Queries) (bool, error) {
	if im.opts.IDs == (IDRange{}) || im.opts.IDs.Last > maxKeptID {
		return false, nil
	}
	here, err := idRange(r)
	return here.First > here.Last && im.opts.IDs.First > here.Last, err
}

// put stores one job. false: its key is held.
func (im *Import) put(t *txn, j *importJob) (stored bool, err error) {
	ctx := context.Background()
	result, err := t.q.ImportJob(ctx, j.row.ImportJobParams)
	if err != nil {
		return false, err
	}
	if n, err := result.RowsAffected(); err != nil {
		return false, err
	} else if n == 0 {
		return false, im.explain(t, j)
	}
	id, err := result.LastInsertId()
	if err != nil {
		return false, err
	}
	if j.payload != nil {
		if err := t.q.PutPayload(ctx, sqlite.PutPayloadParams{MessageID: id, Data: j.payload}); err != nil {
			return false, err
		}
	}
	for _, d := range j.history {
		d.MessageID = id
		if err := t.q.ImportDelivery(ctx, d); err != nil {
			return false, err
		}
	}
	if j.row.Status == statusReady && j.row.Delayed == 0 {
		t.ring(forJobs, j.row.Queue, 1)
	} else {
		t.look = true
	}
	return true, nil
}

// explain tells a key that is held, which is no error, from an id that is taken.
func (im *Import) explain(t *txn, j *importJob) error {
	if j.row.JobID != nil {
		_, err := t.q.FindKey(context.Background(), sqlite.FindKeyParams{Queue: j.row.Queue, JobID: *j.row.JobID})
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return fmt.Errorf("%w: the id %d was given to another job meanwhile, by a program that doesn't heed the sequence", ErrImportMoved, deref(j.row.ID))
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
