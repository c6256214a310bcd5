package queue

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
	"github.com/localqueue/localqueue/queue/internal/turnstile"
)

// Store is a directory with one database file in it, open in this process. Any number of Stores, in any number of
// processes, may be open on one directory. Its methods may be called from any goroutine.
type Store struct {
	dir    string
	path   string
	cfg    config
	worker string // host:pid[:name]

	w      *writer
	reader *sql.DB         // a few read-only connections
	read   *sqlite.Queries // on the reader
	bells  *bells
	file   fileWatch
	here   *held // that this Store is open

	foreign     foreignNews
	checkpoints checkpointer

	closeOnce sync.Once
	closing   chan struct{}
	closeErr  error
}

// Open opens the queue in dir, or makes it there. A directory it makes is 0700, the files 0600; an existing directory is
// left as it is. What root makes beside another user's database belongs to that user. Options of a queue become the defaults
// of all queues of the Store.
//
// Errors: ErrInvalid (an option), ErrInMemory, ErrNotDirectory, ErrNoQueue, ErrNetworkFS, ErrForeignFile, ErrNewerSchema,
// ErrCorrupt, ErrReadOnly, ErrDiskFull, ErrIO, ErrBusy, ErrReplaced (there is a WAL, but no database). A file that is refused
// is left unchanged.
func Open(dir string, opts ...Option) (*Store, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	path, here, err := enter(dir, &cfg)
	if err != nil {
		return nil, err
	}
	s, err := open(dir, path, cfg)
	if err != nil {
		here.release()
		return nil, err
	}
	s.here = here
	return s, nil
}

func open(dir, path string, cfg config) (*Store, error) {
	ctx := context.Background()
	if _, err := ensureSchema(ctx, path, &cfg); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, path: path, cfg: cfg, worker: workerName(cfg.worker), closing: make(chan struct{})}
	if err := s.file.remember(path); err != nil {
		return nil, storeError(path, err)
	}
	// The writer doesn't wait for locks by itself, and another process may be recovering or removing the WAL.
	var wait time.Duration
	if cfg.noLine {
		wait = cfg.busy
	}
	err := retryBusy(ctx, cfg.busy, func() (err error) {
		s.w, err = openWriter(ctx, path, wait)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, storeError(path, err))
	}
	s.reader = sql.OpenDB(newConnector(path, cfg.busy, "&mode=rw&_stmt_cache_size=64", readerPragmas()).reading())
	s.reader.SetMaxOpenConns(4)
	s.reader.SetMaxIdleConns(4)
	s.read = sqlite.New(s.reader)
	s.bells = newBells(s)
	if !cfg.noLine {
		line := filepath.Join(filepath.Dir(path), lineFile)
		if err = makeBeside(line); err == nil {
			s.w.line, err = turnstile.Open(line, plantedTimes(turnstile.Defaults))
		}
		if err != nil { // only the order is lost: whoever writes tries again until the lock is free
			cfg.logger.Warn("localqueue: processes that write have no order", "dir", dir, "err", err)
		}
	}
	return s, nil
}

func configure(opts []Option) (config, error) {
	cfg := defaults()
	for _, o := range opts {
		if err := o.apply(&cfg); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

func workerName(name string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	who := fmt.Sprintf("%s:%d", host, os.Getpid())
	if name != "" {
		who += ":" + name
	}
	return who
}

// Close closes the files and makes blocked calls return ErrClosed at once. It settles nothing: leases run out by
// themselves. An operation that is under way is finished first. Closing again does nothing.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.foreign.stop()
		s.bells.stop()
		s.closeErr = s.w.close()
		s.checkpoints.stop()
		if err := s.reader.Close(); s.closeErr == nil {
			s.closeErr = err
		}
		s.here.release()
	})
	return s.closeErr
}

// Done is closed when the Store is closed.
func (s *Store) Done() <-chan struct{} { return s.closing }

// Dir is the directory as given to Open.
func (s *Store) Dir() string { return s.dir }

// Logger is where the Store reports its own faults.
func (s *Store) Logger() *slog.Logger { return s.cfg.logger }

// Now is the time by the Store's clock.
func (s *Store) Now() time.Time { return s.cfg.clock() }

func (s *Store) nowMillis() int64 { return s.plantedTime(s.cfg.clock().UnixMilli()) }

// Queue is a name in a Store. Its methods may be called from any goroutine.
type Queue struct {
	s    *Store
	cfg  config
	name string
	hot  *hotFlag
}

// Queue returns the queue of that name; it needs no making. Options override the Store's defaults; one that belongs to
// Open is refused with ErrInvalid.
func (s *Store) Queue(name string, opts ...Option) (*Queue, error) {
	cfg := s.cfg
	for _, o := range append([]Option{WithQueue(name)}, opts...) {
		if o.storeOnly {
			return nil, invalid("%s belongs to Open: it holds for the whole Store", o.name)
		}
		if err := o.apply(&cfg); err != nil {
			return nil, err
		}
	}
	return &Queue{s: s, cfg: cfg, name: cfg.name, hot: &hotFlag{}}, nil
}

// Default returns the queue that WithQueue named at Open, or "default".
func (s *Store) Default() *Queue {
	return &Queue{s: s, cfg: s.cfg, name: s.cfg.name, hot: &hotFlag{}}
}

// Name is the queue's name.
func (q *Queue) Name() string { return q.name }

// Store is the Store the queue belongs to.
func (q *Queue) Store() *Store { return q.s }

// Lease is how long a claim holds a job.
func (q *Queue) Lease() time.Duration { return q.cfg.lease }

// MaxPayload is the limit of a payload, in bytes.
func (q *Queue) MaxPayload() int { return q.cfg.maxPayload }

// fail says what failed, and where; the sentinel stays underneath.
func (q *Queue) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s on queue %q in %s: %w", op, q.name, q.s.dir, err)
}

// view runs a read-only transaction: one snapshot, without the write lock.
func (s *Store) view(ctx context.Context, fn func(*sqlite.Queries) error) error {
	select {
	case <-s.closing:
		return ErrClosed
	default:
	}
	tx, err := s.reader.BeginTx(ctx, nil)
	if err != nil {
		return s.readError(ctx, err)
	}
	defer func() { _ = tx.Rollback() }()
	return s.readError(ctx, fn(s.read.WithTx(tx)))
}

func (s *Store) readError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-s.closing:
		return ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if gone := s.file.checkNow(); gone != nil {
		return gone
	}
	return storeError(s.path, err)
}

// fileWatch notices that the database file was removed or replaced under an open Store, which SQLite doesn't.
type fileWatch struct {
	path  string
	first os.FileInfo
	mu    sync.Mutex
	last  time.Time
	err   error
}

const fileWatchEvery = 25 * time.Millisecond

func (f *fileWatch) remember(path string) (err error) {
	f.path = path
	f.first, err = os.Stat(path)
	return err
}

// check costs a stat(2) every 25 ms at most. Stat only: see lockFile.
func (f *fileWatch) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.last) < fileWatchEvery {
		return f.err
	}
	return f.look()
}

// checkNow is check after an error, which a file that is gone would explain.
func (f *fileWatch) checkNow() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.look()
}

func (f *fileWatch) look() error {
	f.last = time.Now()
	st, err := os.Stat(f.path)
	switch {
	case err != nil:
		f.err = fmt.Errorf("%w: %s: %w; what was put since is lost with it: restore it, and open the queue again", ErrReplaced, f.path, err)
	case !os.SameFile(f.first, st):
		f.err = fmt.Errorf("%w: %s is another file now; open the queue again, or restart what uses it", ErrReplaced, f.path)
	default:
		f.err = nil
	}
	return f.err
}

func millis(d time.Duration) int64 {
	// Up, so that a delay or a lease is never shorter than asked for.
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
