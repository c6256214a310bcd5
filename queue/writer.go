package queue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
	"github.com/localqueue/localqueue/queue/internal/commit"
	"github.com/localqueue/localqueue/queue/internal/turnstile"
)

// writer is the one connection that writes, with everything prepared on it.
type writer struct {
	path  string
	wait  time.Duration // SQLite's own, for locks
	db    *sql.DB
	group commit.Group[*op] // of the callers in this process; its leader has the connection
	line  *turnstile.Line   // of the processes; nil: without

	conn                    *sql.Conn
	q                       *sqlite.Queries
	begin, commit, rollback *command
	full                    bool // what PRAGMA synchronous is now: FULL or NORMAL
	lost                    bool // the connection broke and could not be replaced yet

	callersTx atomic.Bool // the turn is held by a caller's function (Store.Tx)
	blocked   atomic.Bool // the leader waits for another process
}

// SQLite's own waiting can't be interrupted and starves; the writer has none (a busy timeout of 0), and waits in Go,
// unless the Store is to have no line.
func openWriter(ctx context.Context, path string, wait time.Duration) (*writer, error) {
	w := &writer{path: path, wait: wait}
	w.db = sql.OpenDB(newConnector(path, wait, "&mode=rw", writerPragmas()).reading())
	w.db.SetMaxOpenConns(1)
	if err := w.connect(ctx); err != nil {
		_ = w.db.Close()
		return nil, err
	}
	return w, nil
}

func (w *writer) connect(ctx context.Context) error {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return err
	}
	w.conn = conn
	if w.q, err = sqlite.Prepare(ctx, w.conn); err != nil {
		return errors.Join(err, w.conn.Close())
	}
	for _, p := range []struct {
		command **command
		text    string
	}{{&w.begin, "BEGIN IMMEDIATE"}, {&w.commit, "COMMIT"}, {&w.rollback, "ROLLBACK"}} {
		if *p.command, err = prepareCommand(w.conn, p.text); err != nil {
			return errors.Join(err, w.conn.Close())
		}
	}
	w.full, w.lost = false, false
	return nil
}

// reconnect replaces a connection that can't be brought out of its transaction. If that fails, the next write tries again.
func (w *writer) reconnect() error {
	_ = w.closeCommands()
	// Raw with ErrBadConn makes the pool drop the connection instead of keeping it.
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = w.conn.Close()
	w.lost = true
	return w.connect(context.Background())
}

func (w *writer) closeCommands() error {
	return errors.Join(w.begin.close(), w.commit.close(), w.rollback.close())
}

// close waits for the operation under way, and leads for good.
func (w *writer) close() error {
	last := &commit.Call[*op]{Alone: true}
	for lead := w.group.Join(last); !lead; {
		lead = <-last.Turn()
	}
	var err error
	if !w.lost {
		err = errors.Join(w.q.Close(), w.closeCommands())
	}
	if w.line != nil {
		err = errors.Join(err, w.line.Close())
	}
	if !w.lost {
		err = errors.Join(err, w.conn.Close())
	}
	return errors.Join(err, w.db.Close())
}

// setSync switches PRAGMA synchronous. It takes effect when it is prepared, so it can't be a cached statement; run like
// this it costs under 1 us.
func (w *writer) setSync(full bool) error {
	if full = full && !plantedUnsynced(); w.full == full {
		return nil
	}
	level := "1"
	if full {
		level = "2"
	}
	_, err := w.conn.ExecContext(context.Background(), "PRAGMA synchronous = "+level)
	if err == nil {
		w.full = full
	}
	return err
}

// waitForLocks sets SQLite's own waiting.
func (w *writer) waitForLocks(d time.Duration) error {
	return w.conn.QueryRowContext(context.Background(), "PRAGMA busy_timeout = "+strconv.FormatInt(d.Milliseconds(), 10)).Scan(new(int))
}

// undo rolls back. SQLite has done so by itself after some errors, so ROLLBACK's own error says nothing; what counts is
// that the connection is out of the transaction.
func (w *writer) undo(s *Store) {
	_ = w.rollback.run()
	if !inTransaction(w.conn) {
		return
	}
	if err := w.reconnect(); err != nil {
		s.cfg.logger.Error("localqueue: the writing connection is lost", "dir", s.dir, "err", err)
	}
}
