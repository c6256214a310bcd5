package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// inspection is a look at a file that leaves it as it is: a connection that can't write, and a second one that only tries
// whether it could.
type inspection struct {
	path     string
	file     string // behind its links: SQLite's own files are beside it
	busy     time.Duration
	deadline time.Time
	reader   *sql.DB
	writer   *sql.DB
	level    Durability
	hadWAL   bool
}

func openInspection(path, file string, cfg *config) *inspection {
	in := &inspection{path: path, file: file, busy: cfg.busy, deadline: time.Now().Add(cfg.busy), level: cfg.durability, hadWAL: fileExists(file + "-wal")}
	// The database is there and lends its own mode: no lock file has to be made.
	in.reader = sql.OpenDB(connectorLike(path, path, cfg.busy, "&mode=ro", readerPragmas()))
	in.writer = sql.OpenDB(connectorLike(path, path, 0, "&mode=rw", writerPragmas()))
	in.reader.SetMaxOpenConns(1)
	in.writer.SetMaxOpenConns(1)
	return in
}

// close closes last what leaves the directory as it was: a connection that can't write leaves the WAL alone, as somebody's
// death has left it; one that can removes a WAL that was only made for the look.
func (in *inspection) close() {
	first, last := in.writer, in.reader
	if !in.hadWAL && fileExists(in.file+"-wal") {
		first, last = last, first
		_, _ = pragmaText(context.Background(), in.writer, "schema_version") // makes it know the WAL; an error leaves that where it is
	}
	_ = first.Close() // nothing was written
	_ = last.Close()
}

func (in *inspection) left() time.Duration { return max(0, time.Until(in.deadline)) }

// read reads all that the file tells by itself.
func (in *inspection) read(ctx context.Context, f *Facts) error {
	f.NewestSchema = newestVersion(in.reader)
	what, err := in.identify(ctx)
	f.Schema, f.Analyzed = what.version, what.analyzed
	f.Journal = "wal"
	if err != nil || !what.wal {
		f.Journal = ""
	}
	if err != nil {
		return err
	}
	if what.empty {
		return ErrNoQueue
	}
	if err := in.readPages(ctx, f); err != nil {
		return storeError(in.path, err)
	}
	if f.Schema != f.NewestSchema {
		return nil // its tables may be others
	}
	return storeError(in.path, f.readQueues(ctx, in.reader))
}

// identify says what the file is. While another process opens it for the first time, it looks like a foreign one.
func (in *inspection) identify(ctx context.Context) (file, error) {
	f, err := identify(ctx, in.reader, in.path)
	if err == nil && !f.empty && f.version == newestVersion(in.reader) || errors.Is(err, ErrBusy) {
		return f, err
	}
	lock := filepath.Join(filepath.Dir(in.path), lockFile)
	if st, gone := os.Lstat(lock); gone != nil || !st.Mode().IsRegular() {
		return f, err
	}
	turn := flock.New(lock, flock.SetFlag(os.O_RDONLY))
	wait, cancel := context.WithTimeout(ctx, in.left()+time.Millisecond)
	defer cancel()
	if _, locked := turn.TryRLockContext(wait, 5*time.Millisecond); locked != nil {
		if ctx.Err() == nil && errors.Is(locked, context.DeadlineExceeded) {
			return f, fmt.Errorf("%w: another process has been opening or migrating %s for %v", ErrBusy, in.path, in.busy)
		}
		return f, err
	}
	defer func() { _ = turn.Unlock() }()
	return identify(ctx, in.reader, in.path)
}

func (in *inspection) readPages(ctx context.Context, f *Facts) error {
	conn, err := in.reader.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if f.Journal, err = pragmaText(ctx, conn, "journal_mode"); err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		into *int64
	}{{"page_size", &f.PageSize}, {"page_count", &f.Pages}, {"freelist_count", &f.FreePages}} {
		if err := conn.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(p.into); err != nil {
			return err
		}
	}
	in.readWAL(ctx, conn, f)
	if !f.WALOver() {
		return nil
	}
	copied := f.WALCopied
	if f.Readers, err = steadyReaders(ctx, in.file+"-shm"); err != nil {
		return err
	}
	in.readWAL(ctx, conn, f)
	if f.WALCopied != copied { // many short reads may look like a long one, but let the copying go on
		f.Readers = nil
	}
	return nil
}

// readWAL leaves zeros where SQLite knows no figures: of a read-only file, or of one that isn't in WAL mode.
func (in *inspection) readWAL(ctx context.Context, conn *sql.Conn, f *Facts) {
	var busy, size, copied int64
	err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &size, &copied)
	if f.WALKnown = err == nil && size >= 0; f.WALKnown {
		f.WALFrames, f.WALCopied = size, copied
	}
}

// restoring waits for a restore to end, and tells whether it still has the directory for itself when the busy timeout is over.
func (in *inspection) restoring(ctx context.Context) bool {
	open := filepath.Join(filepath.Dir(in.path), openFile)
	for heldAlone(open) {
		if in.left() == 0 || ctx.Err() != nil {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// tryWrite takes the write lock and gives it back, as the Stores take it, and reads back how their commits are synced.
func (in *inspection) tryWrite(ctx context.Context, f *Facts) error {
	conn, err := in.writer.Conn(ctx)
	if err != nil {
		return storeError(in.path, err)
	}
	defer func() { _ = conn.Close() }()
	w := &writer{conn: conn}
	if f.OtherLevel, err = w.syncLevel(ctx, in.level == Full); err == nil {
		f.SyncedLevel, err = w.syncLevel(ctx, in.level != Normal)
	}
	if err != nil {
		return storeError(in.path, err)
	}
	err = retryBusy(ctx, in.left(), func() error {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err
	})
	if err != nil {
		if isBusy(err) {
			f.Holder = writerOf(in.file + "-shm")
		}
		return storeError(in.path, err)
	}
	_, err = conn.ExecContext(context.Background(), "ROLLBACK") // not with ctx: the lock must not stay
	return storeError(in.path, err)
}

// syncLevel sets a level as the Stores do, and reads it back.
func (w *writer) syncLevel(ctx context.Context, full bool) (string, error) {
	if err := w.setSync(full); err != nil {
		return "", err
	}
	got, err := pragmaText(ctx, w.conn, "synchronous")
	if name, ok := map[string]string{"0": "off", "1": "normal", "2": "full", "3": "extra"}[got]; ok {
		return name, err
	}
	return got, err
}
