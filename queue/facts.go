package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// Facts are what can be said of a directory with a queue, also of one that Open refuses. See Inspect; the package doctor
// judges them.
type Facts struct {
	Dir string    // absolute
	At  time.Time // when, by the clock of WithClock

	SQLite       string // the version linked in
	Schema       int64  // of the file; 0: of the Python original, or not known (see SchemaKnown)
	NewestSchema int64  // that this program knows

	Journal     string // the journal mode, "wal" as it should be
	Durability  Durability
	SyncedLevel string // PRAGMA synchronous as read back from a writing connection, for commits that the Durability syncs: "full"; "" if none could be made
	OtherLevel  string // the same for the other commits: "normal"

	FileSystem string // its type, as "ext4"
	Network    bool   // it is one on which SQLite's locks don't hold
	FreeBytes  int64  // for the user of this process

	FileBytes int64 // behind a link
	PageSize  int64
	Pages     int64
	FreePages int64 // in the file, left by removed jobs
	Analyzed  bool  // somebody ran ANALYZE; the next Open drops its figures

	WALBytes  int64
	WALKnown  bool     // whether the next two could be read
	WALFrames int64    // pages in the WAL
	WALCopied int64    // of them in the file by now
	Readers   []int    // the processes in one read transaction all through this look, if the WAL is over its bound (see WALOver)
	Holder    int      // the process that holds the write lock; 0 if none was in the way, or it isn't known
	WriteErr  error    // why nobody could write now: ErrBusy, ErrReadOnly, ErrCorrupt, ...
	Openers   []Opener // the processes with Stores on the directory, as far as this user may see them; Linux only
	Restoring bool     // a restore had the directory for itself all through this look: nobody else can open it

	Directory FileFact   // itself, behind its links
	Link      string     // where the directory's name leads, if it is a link
	Files     []FileFact // those of the queue, by name; at most 1000
	Leftovers []string   // beside the directory: unfinished backups and restores of processes that are dead

	LatestStamp time.Time // the latest put, claim or transition of the newest 1000 jobs; zero if there is none
	Queues      []QueueFacts

	Err error // why Open would refuse the file, or why something above could not be read: ErrForeignFile, ErrNewerSchema, ErrCorrupt, ErrReadOnly, ErrBusy, ...
}

// QueueFacts are where a queue's jobs stand. A time is zero where there is no such job.
type QueueFacts struct {
	Stats
	HeadSince     time.Time // since when the job at the head of the line can be claimed
	LastDue       time.Time // when the last delayed job falls due
	FirstLeaseEnd time.Time // zero also if a lease has no end
	LastLeaseEnd  time.Time
	FirstAcked    time.Time // the ack of the oldest that is kept
	LastSettled   time.Time
}

// Opener is a process that has the directory open.
type Opener struct {
	PID     int
	Stores  int
	Stopped bool // by a signal or a debugger: it does nothing until it is continued
}

// Inspect looks at the queue in dir without changing anything: it makes no queue, migrates nothing, promotes and reclaims
// nothing, and leaves the figures of an ANALYZE. (Where no other process has the file open, SQLite makes its -wal and -shm
// for the look and removes them.) What keeps the file from being read is no error but part of the Facts, in Err.
//
// It takes the options of Open; AllowNetworkFS isn't needed. It waits for other processes for about the busy timeout.
// Errors: ErrNoQueue, ErrNotDirectory, ErrInMemory, ErrInvalid, ErrForeignFile (localqueue.db is a directory), ErrReadOnly
// (the directory can't be searched), ErrOldSQLite, and ctx's own.
func Inspect(ctx context.Context, dir string, opts ...Option) (*Facts, error) {
	cfg, err := configure(slices.Concat(opts, []Option{MustExist(), AllowNetworkFS()}))
	if err != nil {
		return nil, err
	}
	path, err := findFile(dir, &cfg)
	if denied := (*fs.PathError)(nil); errors.Is(err, ErrReadOnly) && errors.As(err, &denied) {
		return nil, &hiddenError{path: denied.Path, cause: err}
	}
	if err != nil {
		return nil, err
	}
	f := &Facts{Dir: filepath.Dir(path), At: cfg.clock(), SQLite: SQLiteVersion(), Durability: cfg.durability}
	if err := f.lookAround(dir, path); err != nil {
		return nil, dirError(dir, err)
	}
	in := openInspection(path, behindLinks(path), &cfg)
	f.Err = in.read(ctx, f)
	if f.WriteErr == nil && f.Err == nil {
		f.WriteErr = in.tryWrite(ctx, f)
	}
	in.close()
	f.Restoring = f.Restoring && in.restoring(ctx)
	if errors.Is(f.Err, ErrNoQueue) {
		return nil, fmt.Errorf("%w in %s", ErrNoQueue, dir)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// hiddenError is ErrReadOnly for what can't even be found: its own text would speak of writing.
type hiddenError struct {
	path  string
	cause error
}

func (e *hiddenError) Error() string {
	return fmt.Sprintf("user %d may not look at %s: a directory above it can't be searched; look as its owner", os.Geteuid(), e.path)
}

func (e *hiddenError) Unwrap() error { return e.cause }

// SchemaKnown tells whether Schema was read.
func (f *Facts) SchemaKnown() bool { return f.Err == nil || f.Schema > 0 }

// WALOver tells whether the WAL is larger than Stores let it grow, and much of it not in the file yet: somebody reads on and
// on, or nobody writes.
func (f *Facts) WALOver() bool {
	return f.WALFrames > overfullWAL && f.WALFrames-f.WALCopied > checkpointPages
}

// lookAround is all that is to be seen from outside of the files.
func (f *Facts) lookAround(dir, path string) (err error) {
	if f.FileSystem, f.FreeBytes, err = fileSystem(f.Dir); err != nil {
		return err
	}
	network, err := networkFS(f.Dir)
	if err != nil {
		return err
	}
	f.Network = network != ""
	if f.Directory, f.Link, err = directory(dir); err != nil {
		return err
	}
	if f.Files, err = filesIn(f.Dir); err != nil {
		return err
	}
	file := behindLinks(path)
	f.FileBytes, f.WALBytes = bytesAt(file), bytesAt(file+"-wal")
	f.Openers = openers(filepath.Join(f.Dir, openFile))
	f.Restoring = heldAlone(filepath.Join(f.Dir, openFile))
	f.Leftovers = deadDrafts(f.Dir)
	f.WriteErr = notWritable(path)
	return nil
}

// readQueues reads the jobs, in one snapshot.
func (f *Facts) readQueues(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	r := sqlite.New(tx)
	stamp, err := r.LatestStamp(ctx, 1000)
	if err != nil {
		return err
	}
	f.LatestStamp = timeOrZero(stamp)
	names, err := r.Queues(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		one, err := queueFacts(ctx, r, name, f.At.UnixMilli())
		if err != nil {
			return err
		}
		f.Queues = append(f.Queues, one)
	}
	return nil
}

func queueFacts(ctx context.Context, r *sqlite.Queries, name string, now int64) (QueueFacts, error) {
	st, err := stats(ctx, r, name, now)
	if err != nil {
		return QueueFacts{}, err
	}
	e, err := r.QueueEdges(ctx, name)
	if err != nil {
		return QueueFacts{}, err
	}
	head := e.HeadSince
	if e.FirstDue > 0 && e.FirstDue <= now && (head == 0 || e.FirstDue < head) {
		head = e.FirstDue
	}
	return QueueFacts{
		Stats: st, HeadSince: timeOrZero(head), LastDue: timeOrZero(e.LastDue), FirstLeaseEnd: timeOrZero(e.FirstLeaseEnd),
		LastLeaseEnd: timeOrZero(e.LastLeaseEnd), FirstAcked: timeOrZero(e.FirstAcked), LastSettled: timeOrZero(max(e.LastAcked, e.LastFailed)),
	}, nil
}

func timeOrZero(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return fromMillis(ms)
}
