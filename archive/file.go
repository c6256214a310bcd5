package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

// FileOptions says how to export to a file.
type FileOptions struct {
	ExportOptions
	// Overwrite replaces a file that is there. The default is to refuse, with ErrExists.
	Overwrite bool
	// Resume goes on with the unfinished file of an export that was broken off, behind its last whole line. Without one it
	// begins anew.
	Resume bool
}

// partSuffix names the file until it is whole.
const partSuffix = ".part"

// ExportFile exports to a file, which only its owner can read. It is written as path.part, and gets its name when it is whole
// and on the disk. Broken off, it leaves path.part, to go on with (see FileOptions.Resume).
//
// Errors: ErrExists (path, or path.part without Resume; a path that is no regular file, or a database, or has a name of a
// queue's own files), queue.ErrInvalid (Resume for another queue than it was begun for), ErrOtherSource (or another Store),
// a [LineError] (path.part was changed), ErrVersion, queue.ErrDiskFull, those of [Export].
func ExportFile(ctx context.Context, s *queue.Store, path string, opts FileOptions) (res ExportResult, err error) {
	defer func() { err = diskFull(err) }()
	if err := checkTarget(path, opts.Overwrite); err != nil {
		return res, err
	}
	f, err := openPart(path, opts)
	if err != nil {
		return res, err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	e := &exporter{progress: opts.Progress}
	got, err := readPart(f)
	if err != nil {
		return res, fmt.Errorf("%s: %w", f.Name(), err)
	}
	e.head, e.jobs = got.head, got.jobs
	if err := got.belongs(ctx, s, opts.Queue); err != nil {
		return res, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if err := cutTo(f, got.size); err != nil {
		return res, err
	}
	e.w = bufio.NewWriterSize(f, 256<<10)
	if e.head == nil {
		if e.head, err = newHeader(ctx, s, opts.Queue); err == nil {
			err = e.line(e.head)
		}
	}
	if err == nil && !got.whole {
		err = e.rest(ctx, s, got.lastID)
	}
	res = ExportResult{e.head.ID, e.jobs}
	if err != nil {
		_ = e.w.Flush() // a resumed export goes on behind what gets through
		return res, err
	}
	return res, name(f, path)
}

// diskFull gives a full disk its sentinel.
func diskFull(err error) error {
	if !errors.Is(err, queue.ErrDiskFull) && (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)) {
		return fmt.Errorf("%w: free some space: %w", queue.ErrDiskFull, err)
	}
	return err
}

// checkTarget refuses a path that the export must not take the place of. A queue's own files are told by their names and not
// opened: closing a database beside SQLite would drop its locks.
func checkTarget(path string, overwrite bool) error {
	if strings.HasPrefix(filepath.Base(path), "localqueue.") {
		return fmt.Errorf("%w: %s has a name of a queue's own files; export to another name", ErrExists, path)
	}
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return fmt.Errorf("%w: %s is no regular file; export to a file, or to a stream", ErrExists, path)
	case !overwrite:
		return fmt.Errorf("%w: %s", ErrExists, path)
	}
	is, err := isDatabase(path)
	if is {
		return fmt.Errorf("%w: %s is an SQLite database; export to another name", ErrExists, path)
	}
	return err
}

func isDatabase(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	const magic = "SQLite format 3\x00"
	start := make([]byte, len(magic))
	_, err = io.ReadFull(f, start)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return string(start) == magic, errors.Join(err, f.Close())
}

// openPart opens the unfinished file, and keeps other exports away from it.
func openPart(path string, opts FileOptions) (*os.File, error) {
	flags := os.O_RDWR | os.O_CREATE | unix.O_NOFOLLOW
	if !opts.Resume {
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(path+partSuffix, flags, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w: %s, of an export that was broken off or is under way; resume it, or remove it", ErrExists, path+partSuffix)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: another export is writing to %s", ErrExists, f.Name()), f.Close())
	}
	return f, nil
}

// part is what an unfinished file has.
type part struct {
	head   *header // nil: nothing yet
	size   int64   // of its whole lines
	lines  int64
	jobs   int64
	lastID int64
	whole  bool // the last line too
}

// readPart reads the whole lines of an unfinished file.
func readPart(f *os.File) (p part, err error) {
	for r := bufio.NewReaderSize(f, 256<<10); !p.whole; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		if p.head == nil {
			if p.head, err = decodeHeader(line); err == nil && p.head == nil {
				err = ErrUnnamed
			}
		} else {
			err = p.add(line)
		}
		if err != nil {
			return p, fmt.Errorf("it can't be resumed, remove it: %w", &LineError{p.lines + 1, err})
		}
		p.lines++
		p.size += int64(len(line))
	}
	return p, nil
}

func (p *part) add(line []byte) error {
	job, end, err := decodeJob(line)
	if err != nil {
		return err
	}
	if p.whole = end != nil; p.whole {
		if end.Jobs != p.jobs {
			return fmt.Errorf("%w: it had %d jobs, here are %d", ErrTruncated, end.Jobs, p.jobs)
		}
		return nil
	}
	if job.ID <= p.lastID || job.ID > p.head.LastID {
		return fmt.Errorf("id %d after id %d, of an export up to %d", job.ID, p.lastID, p.head.LastID)
	}
	if only := p.head.Queue; only != nil && job.Queue != *only {
		return fmt.Errorf("a job of another queue than %q", *only)
	}
	p.lastID = job.ID
	p.jobs++
	return nil
}

// belongs refuses to go on with what another export has begun: jobs would be missing.
func (p *part) belongs(ctx context.Context, s *queue.Store, only string) error {
	if p.head == nil {
		return nil
	}
	here, err := s.Identity(ctx)
	switch {
	case err != nil:
		return err
	case p.head.Source != here:
		return fmt.Errorf("%w; name that one, or remove the file", ErrOtherSource)
	case deref(p.head.Queue) != only:
		return fmt.Errorf("%w: it was begun for %s; name the same, or remove the file", queue.ErrInvalid, which(p.head.Queue))
	}
	return nil
}

func cutTo(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := f.Seek(size, io.SeekStart)
	return err
}

// name gives the file its name, once it is on the disk.
func name(f *os.File, path string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func which(q *string) string {
	if q == nil {
		return "all queues"
	}
	return fmt.Sprintf("the queue %q", *q)
}
