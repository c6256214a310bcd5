//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// scratch is the directory of a whole benchmark; each run has one of its own in it.
type scratch struct {
	dir  string
	made string // what was made above it, or ""
	runs int
}

// newScratch makes the directory: in the one that was named, else where temporary files belong. If those are kept in
// memory, it goes beside the working directory: a sync to the disk would mean nothing there.
func newScratch(named string) (*scratch, error) {
	s := &scratch{}
	parent := named
	if named == "" {
		parent = os.TempDir()
		if fileSystem(parent) == "tmpfs" {
			parent = "."
		}
	} else if _, err := os.Stat(named); errors.Is(err, fs.ErrNotExist) {
		s.made = named
		if err := os.Mkdir(named, 0o700); err != nil {
			return nil, fmt.Errorf("the directory for the benchmark: %w", err)
		}
	}
	dir, err := os.MkdirTemp(parent, "localqueue-bench-")
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the directory for the benchmark: %w", err), s.remove())
	}
	s.dir = dir
	return s, nil
}

func (s *scratch) remove() error {
	var errs []error
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	if s.made != "" {
		_ = os.Remove(s.made) // unless somebody has put something into it
	}
	return errors.Join(errs...)
}

// bed is where one run takes place.
type bed struct {
	dir      string // of the queue
	journals []string
}

// next numbers what is made in the directory.
func (s *scratch) next() int {
	s.runs++
	return s.runs
}

func (s *scratch) newBed() (*bed, error) {
	b := &bed{dir: filepath.Join(s.dir, fmt.Sprintf("run-%d", s.next()))}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory of a run: %w", err)
	}
	return b, nil
}

// journal names the next process's journal.
func (b *bed) journal() string {
	path := filepath.Join(b.dir, fmt.Sprintf("journal-%d", len(b.journals)))
	b.journals = append(b.journals, path)
	return path
}

func (b *bed) remove() error { return os.RemoveAll(b.dir) }

// open opens the queue for the work before and after the run. What that does isn't measured, so it needn't be synced.
func (b *bed) open(opts ...queue.Option) (*queue.Store, error) {
	opts = append([]queue.Option{queue.WithDurability(queue.Normal), queue.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	return queue.Open(b.dir, opts...)
}

// drain works off what is left, and waits for leases of processes that are gone.
func (b *bed) drain(ctx context.Context, q *queue.Queue, lease time.Duration) (err error) {
	j, err := openJournal(b.journal(), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	deadline := time.Now().Add(lease + time.Minute)
	for {
		jobs, err := q.TryGetMany(ctx, 1000)
		if errors.Is(err, queue.ErrEmpty) {
			s, err := q.Stats(ctx)
			if err != nil || s.Processing == 0 && s.Ready == 0 || time.Now().After(deadline) {
				return err // what is left over, the accounting will tell
			}
			if err := sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		refs := make([]queue.Ref, len(jobs))
		for i, job := range jobs {
			refs[i] = job.Ref()
			j.write(record{event: evClaim, id: job.ID, delivery: job.Delivery, at: monotonic(), until: job.LeaseUntil.UnixMilli()})
		}
		each, err := q.AckMany(ctx, refs)
		if err := errors.Join(err, errors.Join(each...)); err != nil {
			return err
		}
		for _, job := range jobs {
			j.write(record{event: evAck, id: job.ID, delivery: job.Delivery, at: monotonic()})
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
