package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/localqueue/localqueue/db/sqlite"
	"github.com/localqueue/localqueue/sql/sqlite/migrations"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Migration is one step of the schema.
type Migration struct {
	Version   int64
	Name      string
	Applied   bool
	AppliedAt time.Time // zero if not applied
}

// Migrate makes or updates the schema of the queue in dir, as Open does, and returns the steps it applied.
func Migrate(ctx context.Context, dir string, opts ...Option) ([]Migration, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	path, here, err := enter(dir, &cfg)
	if err != nil {
		return nil, err
	}
	defer here.release()
	return ensureSchema(ctx, path, &cfg)
}

// MigrateStatus lists the steps of the schema and which of them the queue in dir has. It changes nothing; a directory
// without a queue is ErrNoQueue.
func MigrateStatus(ctx context.Context, dir string, opts ...Option) ([]Migration, error) {
	cfg, err := configure(append(opts, MustExist()))
	if err != nil {
		return nil, err
	}
	path, here, err := enter(dir, &cfg)
	if err != nil {
		return nil, err
	}
	defer here.release()
	db := sql.OpenDB(newConnector(path, cfg.busy, "&mode=rw", readerPragmas()))
	defer func() { _ = db.Close() }()
	unlock, err := lockSchema(ctx, path, cfg.busy) // another process may be in the middle of its first open
	if err != nil {
		return nil, err
	}
	defer unlock()
	f, err := identify(ctx, db, path)
	if err != nil {
		return nil, err
	}
	all, err := steps(db)
	if err != nil {
		return nil, err
	}
	applied := map[int64]time.Time{}
	if f.version > 0 {
		rows, err := sqlite.New(db).AppliedMigrations(ctx)
		if err != nil {
			return nil, storeError(path, err)
		}
		for _, r := range rows {
			applied[r.VersionID] = deref(r.Tstamp)
		}
	}
	out := make([]Migration, len(all))
	for i, s := range all {
		at, ok := applied[s.Version]
		out[i] = Migration{Version: s.Version, Name: filepath.Base(s.Path), Applied: ok, AppliedAt: at}
	}
	return out, nil
}

// file is what an SQLite file turns out to be.
type file struct {
	empty    bool  // no tables yet, but for goose's
	version  int64 // the newest migration applied; 0 also for a file of the Python original
	versions bool  // goose's table is there
	wal      bool
	analyzed bool // somebody ran ANALYZE
}

// originalColumns are those of every file that the Python original writes.
var originalColumns = []string{"id", "queue", "payload", "status", "attempts", "max_attempts", "available_at", "lease_until", "receipt", "last_error", "job_id", "created_at", "updated_at"}

// identify reads what the file is and refuses one that is not ours, or newer than this program. It changes nothing.
func identify(ctx context.Context, db *sql.DB, path string) (file, error) {
	var f file
	conn, err := db.Conn(ctx)
	if err != nil {
		return f, storeError(path, err)
	}
	defer func() { _ = conn.Close() }()
	mode, err := pragmaText(ctx, conn, "journal_mode")
	if err != nil {
		return f, storeError(path, err)
	}
	f.wal = mode == "wal"
	tables, err := columnOf(ctx, conn, "PRAGMA main.table_list", "name")
	if err != nil {
		return f, storeError(path, err)
	}
	f.analyzed = tables["sqlite_stat1"]
	f.versions = tables[goose.DefaultTablename]
	f.empty = true
	for name := range tables {
		f.empty = f.empty && (strings.HasPrefix(name, "sqlite_") || name == goose.DefaultTablename)
	}
	if f.versions && (f.empty || tables["messages"]) {
		if f.version, err = sqlite.New(conn).SchemaVersion(ctx); err != nil {
			return f, storeError(path, err)
		}
	}
	if f.empty && f.version == 0 { // also where a first open ended before its first migration
		return f, nil
	}
	if !tables["messages"] {
		return f, fmt.Errorf("%w: %s is an SQLite database of another program", ErrForeignFile, path)
	}
	columns, err := columnOf(ctx, conn, "PRAGMA main.table_info(messages)", "name")
	if err != nil {
		return f, storeError(path, err)
	}
	for _, c := range originalColumns {
		if !columns[c] {
			return f, fmt.Errorf("%w: the table messages in %s has no column %s", ErrForeignFile, path, c)
		}
	}
	if newest := newestVersion(db); f.version > newest {
		return f, fmt.Errorf("%w: %s has schema version %d, this program knows %d; use the newer program", ErrNewerSchema, path, f.version, newest)
	}
	return f, nil
}

func newestVersion(db *sql.DB) int64 {
	all, err := steps(db)
	if err != nil || len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Version
}

// columnOf collects the values of one column of a pragma's rows.
func columnOf(ctx context.Context, conn *sql.Conn, query, column string) (map[string]bool, error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for rows.Next() {
		values := make([]any, len(names))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		for i, name := range names {
			if name == column {
				found[fmt.Sprint(*values[i].(*any))] = true
			}
		}
	}
	return found, rows.Err()
}

func provider(db *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectSQLite3, db, migrations.FS, goose.WithDisableGlobalRegistry(true))
}

func steps(db *sql.DB) ([]*goose.Source, error) {
	p, err := provider(db)
	if err != nil {
		return nil, err
	}
	return p.ListSources(), nil
}

// ensureSchema brings the file at path to this program's schema, whatever it was: nothing, a file of the Python
// original, an older one of ours. Many processes may do so at once: goose has no lock of its own for SQLite, so they
// take turns at the lock file.
func ensureSchema(ctx context.Context, path string, cfg *config) ([]Migration, error) {
	db := sql.OpenDB(newConnector(path, cfg.busy, "&mode=rwc&_txlock=immediate", []pragma{{"foreign_keys", "0"}}))
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)

	if st, err := os.Stat(path); err == nil && st.Size() > 0 {
		// An error counts only under the lock: another process may be in the middle of its first open, when the file looks
		// like one of another program.
		if f, err := identify(ctx, db, path); err == nil && f.wal && f.version == newestVersion(db) && !f.analyzed {
			return nil, nil
		}
	} else if err := refuseLost(path); err != nil { // again: entering may have taken a while
		return nil, err
	}
	unlock, err := lockSchema(ctx, path, cfg.busy)
	if err != nil {
		return nil, err
	}
	defer unlock()

	f, err := identify(ctx, db, path)
	if err != nil {
		return nil, err
	}
	if err := retryBusy(ctx, cfg.busy, func() error { return setUpFile(ctx, db, f) }); err != nil {
		return nil, storeError(path, err)
	}
	if f.analyzed {
		if err := retryBusy(ctx, cfg.busy, func() error { return sqlite.New(db).ForgetStatistics(ctx) }); err != nil {
			return nil, storeError(path, err)
		}
	}
	if !f.versions {
		if err := retryBusy(ctx, cfg.busy, func() error { return makeVersionTable(ctx, db) }); err != nil {
			return nil, fmt.Errorf("migrate %s: %w", path, storeError(path, err))
		}
	}
	p, err := provider(db)
	if err != nil {
		return nil, err
	}
	var applied []Migration
	for {
		passing(whileMigrating)
		var step *goose.MigrationResult
		err := retryBusy(ctx, cfg.busy, func() (err error) {
			step, err = p.UpByOne(ctx)
			return err
		})
		if errors.Is(err, goose.ErrNoNextVersion) {
			return applied, nil
		}
		if err != nil {
			return nil, fmt.Errorf("migrate %s: %w", path, storeError(path, err))
		}
		applied = append(applied, Migration{Version: step.Source.Version, Name: filepath.Base(step.Source.Path), Applied: true, AppliedAt: time.Now()})
	}
}

// makeVersionTable makes the table in which goose keeps what was applied. Left to goose, a lock would be waited for four
// times, with a second between.
func makeVersionTable(ctx context.Context, db *sql.DB) error {
	table, err := database.NewStore(goose.DialectSQLite3, goose.DefaultTablename)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil) // immediate
	if err != nil {
		return err
	}
	err = table.CreateVersionTable(ctx, tx)
	if err == nil {
		err = table.Insert(ctx, tx, database.InsertRequest{Version: 0})
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// lockSchema takes the turn to look at a file's schema and change it, among all processes.
func lockSchema(ctx context.Context, path string, busy time.Duration) (unlock func(), err error) {
	lock := flock.New(filepath.Join(filepath.Dir(path), lockFile), flock.SetPermissions(0o600))
	wait, cancel := context.WithTimeout(ctx, busy+time.Millisecond)
	defer cancel()
	if _, err := lock.TryLockContext(wait, 5*time.Millisecond); err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("%w: another process has been opening %s for %v", ErrBusy, path, busy)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, dirError(filepath.Dir(path), err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// setUpFile gives a new file its page size, and any file the WAL. Both need a file that nobody else is writing.
func setUpFile(ctx context.Context, db *sql.DB, f file) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if f.empty {
		if _, err := conn.ExecContext(ctx, "PRAGMA page_size = "+pageSize); err != nil {
			return err
		}
	}
	mode, err := pragmaText(ctx, conn, "journal_mode = WAL")
	if err == nil && mode != "wal" {
		return fmt.Errorf("%w: journal mode stays %q; the file system has no shared memory", ErrIO, mode)
	}
	return err
}

// retryBusy repeats fn while another writer is in the way. Switching to the WAL is refused at once, without SQLite's own
// waiting.
func retryBusy(ctx context.Context, most time.Duration, fn func() error) error {
	start := time.Now()
	for {
		err := fn()
		if err == nil || !isBusy(err) || time.Since(start) >= most {
			return err
		}
		timer := time.NewTimer(5 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}
