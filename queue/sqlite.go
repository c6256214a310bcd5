package queue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"
)

// This file is all that knows the driver: connections, pragmas, and what its errors mean.

const (
	dbFile   = "localqueue.db"
	lineFile = "localqueue.line" // see internal/turnstile
	bellFile = "localqueue.bell" // see internal/doorbell; its FIFOs have a number after that
	lockFile = "localqueue.lock" // a file of its own: opening the database any other way drops SQLite's locks

	// pageSize of new files. Each page a transaction dirties is a frame in the WAL, and that is what a commit costs.
	pageSize = "2048"
	// longestPath is what SQLite takes as the name of a database: 512 bytes, with "-journal" behind it.
	longestPath = 504
	// oldestSQLite is free of the WAL-reset race, which can corrupt a file with several writers (sqlite.org, 3.51.3).
	oldestSQLite = 3051003
)

type pragma struct{ name, value string }

// writerPragmas: temp_store keeps the row lists of IN (SELECT ...) out of files (a factor of 4). For checkpoints see
// checkpoint.go.
func writerPragmas() []pragma {
	return []pragma{{"temp_store", "2"}, {"cache_size", "-16000"}, {"synchronous", "1"},
		{"journal_size_limit", "16777216"}, {"wal_autocheckpoint", fmt.Sprint(overfullWAL)}}
}

func readerPragmas() []pragma {
	return []pragma{{"temp_store", "2"}, {"cache_size", "-4000"}, {"query_only", "1"}}
}

// SQLiteVersion is the version of the SQLite that is linked in.
func SQLiteVersion() string {
	v, _, _ := sqlite3.Version()
	return v
}

func checkSQLite() error {
	if v, n, _ := sqlite3.Version(); n < oldestSQLite {
		return fmt.Errorf("%w: version %s can corrupt a database with several writers; build with 3.51.3 or newer", ErrOldSQLite, v)
	}
	return nil
}

// connector opens connections of one kind and checks that each really has what was asked for.
type connector struct {
	driver *sqlite3.SQLiteDriver
	dsn    string
	lock   string
}

// newConnector's connections give the file, and the WAL files after it, the lock file's 0600 from the first byte.
func newConnector(path string, busy time.Duration, params string, pragmas []pragma) *connector {
	return connectorLike(filepath.Join(filepath.Dir(path), lockFile), path, busy, params, pragmas)
}

// connectorLike gives the files that SQLite makes the mode of the file lock.
func connectorLike(lock, path string, busy time.Duration, params string, pragmas []pragma) *connector {
	dsn := "file:" + escapePath(path) + "?_mutex=no&modeof=" + escapePath(lock) + fmt.Sprintf("&_busy_timeout=%d", busy.Milliseconds()) + params
	want := append([]pragma{{"busy_timeout", fmt.Sprint(busy.Milliseconds())}}, pragmas...)
	return &connector{dsn: dsn, lock: lock, driver: &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		for _, p := range pragmas {
			if _, err := c.Exec("PRAGMA "+p.name+" = "+p.value, nil); err != nil {
				return err
			}
		}
		for _, p := range want {
			if got, err := connPragma(c, p.name); err != nil || got != p.value {
				return fmt.Errorf("pragma %s is %q, not %q: %w", p.name, got, p.value, errors.Join(err, ErrIO))
			}
		}
		return nil
	}}}
}

// reading has each new connection read the file at once, so that what is wrong with it shows here, where it can be mended.
func (c *connector) reading() *connector {
	hook := c.driver.ConnectHook
	c.driver.ConnectHook = func(conn *sqlite3.SQLiteConn) error {
		if err := hook(conn); err != nil {
			return err
		}
		_, err := connPragma(conn, "schema_version")
		return err
	}
	return c
}

// Connect opens a connection. SQLite then asks the lock file for the mode of the files it makes; where somebody has removed
// that, it is made anew.
func (c *connector) Connect(context.Context) (conn driver.Conn, err error) {
	for range 5 {
		conn, err = c.driver.Open(c.dsn)
		if _, gone := os.Lstat(c.lock); !errors.Is(gone, os.ErrNotExist) {
			return conn, err
		}
		if makeLock(c.lock, false) != nil || err == nil { // the directory may be gone: the driver's own error tells
			return conn, err
		}
	}
	return conn, err
}

func (c *connector) Driver() driver.Driver { return c.driver }

// escapePath makes a path safe anywhere inside a file: URI: it may hold '?', '#', '%', '&', '+' and spaces.
// (url.QueryEscape's '+' for a space is nothing that SQLite decodes.)
func escapePath(path string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(path), "+", "%20"), "%2F", "/")
}

func connPragma(c *sqlite3.SQLiteConn, name string) (string, error) {
	rows, err := c.Query("PRAGMA "+name, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil {
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		return "", err
	}
	return fmt.Sprint(dest[0]), nil
}

// pragmaText reads a pragma through a pool or a connection.
func pragmaText(ctx context.Context, db DBTX, name string) (string, error) {
	var v string
	err := db.QueryRowContext(ctx, "PRAGMA "+name).Scan(&v)
	return v, err
}

// inTransaction tells whether a connection has a transaction open; true also when it can't be asked.
func inTransaction(conn *sql.Conn) bool {
	open := true
	_ = conn.Raw(func(dc any) error {
		if c, ok := dc.(*sqlite3.SQLiteConn); ok {
			open = !c.AutoCommit()
		}
		return nil
	})
	return open
}

// command is a statement without parameters that every transaction needs, straight from the driver: database/sql's own
// care for a statement would cost each of them about a microsecond, and nobody but the leader uses the connection.
type command struct{ stmt driver.StmtExecContext }

func prepareCommand(conn *sql.Conn, text string) (*command, error) {
	var c command
	err := conn.Raw(func(dc any) error {
		stmt, err := dc.(driver.Conn).Prepare(text)
		if err != nil {
			return err
		}
		c.stmt = stmt.(driver.StmtExecContext)
		return nil
	})
	return &c, err
}

func (c *command) run() error {
	_, err := c.stmt.ExecContext(context.Background(), nil)
	return err
}

func (c *command) close() error {
	if c == nil || c.stmt == nil { // of a connection that could not be made
		return nil
	}
	return c.stmt.(driver.Stmt).Close()
}

func driverCode(err error) (sqlite3.ErrNo, bool) {
	var e sqlite3.Error
	if errors.As(err, &e) {
		return e.Code, true
	}
	return 0, false
}

func isBusy(err error) bool {
	code, ok := driverCode(err)
	return ok && (code == sqlite3.ErrBusy || code == sqlite3.ErrProtocol)
}

func isReadOnly(err error) bool {
	code, ok := driverCode(err)
	return ok && code == sqlite3.ErrReadonly
}

// isOwnFailure tells an operation's own failure (a lost lease, no room), after which it has changed nothing, from one that
// spoils the transaction.
func isOwnFailure(err error) bool {
	_, drivers := driverCode(err)
	return !drivers && !errors.Is(err, sql.ErrNoRows) && !errors.Is(err, ErrIO)
}

// blamesStatement tells whether an error is due to one statement and its values, not to the file or the disk: others in the
// same transaction may do better without it.
func blamesStatement(err error) bool {
	code, ok := driverCode(err)
	if !ok {
		return false
	}
	switch code {
	case sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrMismatch, sqlite3.ErrRange, sqlite3.ErrError:
		return true
	}
	return false
}

// storeError gives a driver's error the sentinel that a caller can act on. Other errors pass unchanged, and so does one that
// has been through here, inside a transaction of the caller's.
func storeError(path string, err error) error {
	for _, told := range []error{ErrBusy, ErrDiskFull, ErrCorrupt, ErrReadOnly, ErrIO} {
		if errors.Is(err, told) {
			return err
		}
	}
	if errors.Is(err, sql.ErrConnDone) {
		return ErrClosed
	}
	code, ok := driverCode(err)
	if !ok {
		return err
	}
	switch code {
	case sqlite3.ErrBusy, sqlite3.ErrProtocol, sqlite3.ErrLocked:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case sqlite3.ErrFull:
		return fmt.Errorf("%w: free some space, nothing of this transaction was stored: %w", ErrDiskFull, err)
	}
	var e sqlite3.Error
	if errors.As(err, &e) {
		switch e.SystemErrno {
		case unix.ENOSPC, unix.EDQUOT: // met at a sync, or while SQLite made or grew a file beside the database
			return fmt.Errorf("%w: free some space: %w", ErrDiskFull, err)
		case unix.EROFS: // the file system was made read-only under an open file, as after an error of the disk
			return fmt.Errorf("%w: %s: %w", ErrReadOnly, path, err)
		}
	}
	switch code {
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, path, err)
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return fmt.Errorf("%w: %s: %w", ErrReadOnly, path, err)
	case sqlite3.ErrCantOpen:
		if dir := filepath.Dir(path); errors.Is(unix.Access(dir, unix.W_OK), unix.EROFS) { // SQLite has no word for it: it can't make the WAL's index
			return fmt.Errorf("%w: %s: %w", ErrReadOnly, dir, unix.EROFS)
		}
		if unix.Access(filepath.Dir(path), unix.W_OK) != nil || unix.Access(path, unix.R_OK|unix.W_OK) != nil && fileExists(path) {
			return fmt.Errorf("%w: check the permissions of %s: %w", ErrReadOnly, filepath.Dir(path), err)
		}
		return fmt.Errorf("%w: %s: %w", ErrIO, path, err)
	case sqlite3.ErrIoErr:
		return fmt.Errorf("%w: %s: %w", ErrIO, path, err)
	}
	return err
}

// commitIsUncertain tells whether a failed COMMIT may all the same be in the file: an I/O error can come after the last
// frame was written. A full disk or a lock comes before it.
func commitIsUncertain(err error) bool {
	code, ok := driverCode(err)
	return !ok || code == sqlite3.ErrIoErr
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sameDatabase tells whether the main database behind tx is the file at path. Stat only: opening and closing it would
// drop SQLite's locks in this process.
func sameDatabase(ctx context.Context, tx DBTX, path string) (bool, error) {
	rows, err := tx.QueryContext(ctx, "PRAGMA database_list")
	if err != nil {
		return false, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var seq int
		var name, file string
		if err := rows.Scan(&seq, &name, &file); err != nil {
			return false, err
		}
		if !strings.EqualFold(name, "main") || file == "" {
			continue
		}
		theirs, err := os.Stat(file)
		if err != nil {
			return false, rows.Close()
		}
		ours, err := os.Stat(path)
		return err == nil && os.SameFile(theirs, ours), rows.Close()
	}
	return false, rows.Err()
}
