package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mattn/go-sqlite3"
)

// copyPages are copied at a time: some ms, after which the caller may want to stop.
const copyPages = 512

// copyPragmas: the file is new and has no name yet. It needs no journal, and is synced once, at the end.
func copyPragmas() []pragma {
	return []pragma{{"journal_mode", "off"}, {"synchronous", "0"}, {"cache_size", "-8000"}}
}

// copyDatabase copies what the database behind src holds in one moment into a new file, while others write.
func copyDatabase(ctx context.Context, src *sql.DB, path string, progress func(done, total int)) error {
	if err := makeLock(filepath.Join(filepath.Dir(path), lockFile), true); err != nil {
		return err
	}
	from, err := src.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	dst := sql.OpenDB(newConnector(path, 0, "&mode=rwc", copyPragmas()))
	defer func() { _ = dst.Close() }()
	to, err := dst.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()

	end, err := beginSnapshot(ctx, from)
	if err != nil {
		return err
	}
	defer end()
	return from.Raw(func(source any) error {
		return to.Raw(func(target any) error {
			return copyPagesOf(ctx, source.(*sqlite3.SQLiteConn), target.(*sqlite3.SQLiteConn), progress)
		})
	})
}

// beginSnapshot opens a read transaction around all steps of a copy: without it each step would have its own, and any commit
// of another connection between two steps makes SQLite begin the copy anew, so that it never ends.
func beginSnapshot(ctx context.Context, conn *sql.Conn) (end func(), err error) {
	if plantedNoSnapshot() {
		return func() {}, nil
	}
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	end = func() { _, _ = conn.ExecContext(context.Background(), "ROLLBACK") }
	if _, err := pragmaText(ctx, conn, "schema_version"); err != nil { // BEGIN alone reads nothing
		end()
		return nil, err
	}
	return end, nil
}

func copyPagesOf(ctx context.Context, from, to *sqlite3.SQLiteConn, progress func(done, total int)) (err error) {
	b, err := to.Backup("main", from, "main")
	if err != nil {
		return err
	}
	defer func() {
		if closing := b.Close(); err == nil {
			err = copyError(closing)
		}
	}()
	for left := -1; ; {
		done, err := b.Step(copyPages)
		if err != nil {
			return copyError(err)
		}
		passing(inBackup)
		if err := ctx.Err(); err != nil {
			return err
		}
		if !done && b.Remaining() == left { // the driver says nothing about a lock
			return fmt.Errorf("%w: the copy doesn't advance; another program holds a lock on it", ErrBusy)
		}
		left = b.Remaining()
		if progress != nil {
			progress(b.PageCount()-left, b.PageCount())
		}
		if done {
			return nil
		}
	}
}

// copyError gives an error of SQLite's backup the form of the driver's other ones: it has only the extended code.
func copyError(err error) error {
	var e sqlite3.Error
	if errors.As(err, &e) {
		e.ExtendedCode = sqlite3.ErrNoExtended(e.Code)
		e.Code &= 0xff
		return e
	}
	return err
}
