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
// Errors: ErrExists (path, or path.part without Resume; a path that is no regular file, or belongs to a queue),
// queue.ErrInvalid (Resume for another queue than it was begun for), ErrVersion, those of [Export].
func ExportFile(ctx context.Context, s *queue.Store, path string, opts FileOptions) (res ExportResult, err error) {
	if err := checkTarget(s, path, opts.Overwrite); err != nil {
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
	if e.head, e.jobs = got.head, got.jobs; e.head != nil && deref(e.head.Queue) != opts.Queue {
		return res, fmt.Errorf("%w: %s was begun for %s; name the same, or remove it", queue.ErrInvalid, f.Name(), which(e.head.Queue))
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

// checkTarget refuses a path that the export must not take the place of.
func checkTarget(s *queue.Store, path string, overwrite bool) error {
	if strings.HasPrefix(filepath.Base(path), "localqueue.") && sameDir(filepath.Dir(path), s.Dir()) {
		return fmt.Errorf("%w: %s is the queue's own; export to another name", ErrExists, path)
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
	return nil
}

func sameDir(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
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
			return p, fmt.Errorf("it can't be resumed, remove it: %w", err)
		}
		p.size += int64(len(line))
	}
	return p, nil
}

func (p *part) add(line []byte) error {
	var l struct {
		ID int64 `json:"id"`
		trailer
	}
	if err := decode(line, &l); err != nil {
		return err
	}
	if p.whole = l.trailer.End != nil; p.whole {
		return nil
	}
	if l.ID <= p.lastID {
		return fmt.Errorf("%w: id %d after id %d", ErrLine, l.ID, p.lastID)
	}
	p.lastID = l.ID
	p.jobs++
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
