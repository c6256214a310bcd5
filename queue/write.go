package queue

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// The one write path: lead, BEGIN IMMEDIATE, read the clock, statements, COMMIT, answer. Everything that changes the file
// goes through Store.write, for one caller or many.

// writer is the one connection that writes, with everything prepared on it.
type writer struct {
	path string
	db   *sql.DB
	turn chan struct{} // held by the goroutine that writes

	conn                    *sql.Conn
	q                       *sqlite.Queries
	begin, commit, rollback *sql.Stmt
	full                    bool // what PRAGMA synchronous is now: FULL or NORMAL
	lost                    bool // the connection broke and could not be replaced yet

	callersTx atomic.Bool // the turn is held by a caller's function (Store.Tx)
}

// SQLite's own waiting can't be interrupted and starves; the writer has none (a busy timeout of 0), and waits
// here, unless the Store is to have no line.
func openWriter(ctx context.Context, path string, wait time.Duration) (*writer, error) {
	w := &writer{path: path, turn: make(chan struct{}, 1)}
	w.db = sql.OpenDB(newConnector(path, wait, "&mode=rw", writerPragmas()))
	w.db.SetMaxOpenConns(1)
	if err := w.connect(ctx); err != nil {
		_ = w.db.Close()
		return nil, err
	}
	return w, nil
}

func (w *writer) connect(ctx context.Context) (err error) {
	if w.conn, err = w.db.Conn(ctx); err != nil {
		return err
	}
	if w.q, err = sqlite.Prepare(ctx, w.conn); err != nil {
		return errors.Join(err, w.conn.Close())
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{{&w.begin, "BEGIN IMMEDIATE"}, {&w.commit, "COMMIT"}, {&w.rollback, "ROLLBACK"}} {
		*p.stmt, err = w.conn.PrepareContext(ctx, p.text) //nolint:sqlclosecheck // close does, with the connection
		if err != nil {
			return errors.Join(err, w.conn.Close())
		}
	}
	w.full, w.lost = false, false
	return nil
}

// reconnect replaces a connection that can't be brought out of its transaction. If that fails, the next write tries again.
func (w *writer) reconnect() error {
	// Raw with ErrBadConn makes the pool drop the connection instead of keeping it.
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = w.conn.Close()
	w.lost = true
	return w.connect(context.Background())
}

func (w *writer) close() error {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	err := w.q.Close()
	for _, stmt := range []*sql.Stmt{w.begin, w.commit, w.rollback} {
		err = errors.Join(err, stmt.Close())
	}
	return errors.Join(err, w.conn.Close(), w.db.Close())
}

// txn is one transaction on the writer, or on a connection of the caller's.
type txn struct {
	s     *Store
	q     *sqlite.Queries
	now   int64 // Unix milliseconds, read under the write lock
	rings []ring
	buf   [2]ring
	look  bool // the next thing to fall due may be another: the watcher must look, after the commit as the rings
}

// ring wakes n waiters once the transaction is in the file.
type ring struct {
	key bellKey
	n   int
}

func (t *txn) ring(kind bellKind, queue string, n int) {
	if n > 0 && t.s.bells.anyone() {
		t.rings = append(t.rings, ring{bellKey{kind, queue}, n})
	}
}

// syncing says whether a commit must be on the disk before it is answered, where the Store is Balanced.
type syncing bool

const (
	synced   syncing = true  // puts, and whatever moves a job to or from a final state
	unsynced syncing = false // claims, acks and the like: a power cut that takes one only redelivers
)

// write runs op in a transaction and returns after COMMIT. An error of op rolls back. The context is for the wait, not
// for the transaction: cancelling a statement could roll back half of it.
func (s *Store) write(ctx context.Context, sync syncing, op func(*txn) error) error {
	start := time.Now()
	if err := s.lead(ctx, start); err != nil {
		return err
	}
	t := &txn{s: s, q: s.w.q}
	t.rings = t.buf[:0]
	err := s.transact(ctx, start, sync, t, op)
	if err == nil && !plantedSilence() {
		for _, r := range t.rings {
			s.bells.ring(r.key, r.n, false)
		}
		if t.look && s.bells.anyone() {
			s.bells.look()
		}
	}
	return err
}

// lead waits for this process's turn to write.
func (s *Store) lead(ctx context.Context, start time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.w.turn <- struct{}{}:
	default:
		timer := time.NewTimer(s.cfg.busy - time.Since(start))
		defer timer.Stop()
		select {
		case s.w.turn <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%w: other writers of this process came first: %w", ErrBusy, ctx.Err())
		case <-s.closing:
			return ErrClosed
		case <-timer.C:
			if s.w.callersTx.Load() {
				return fmt.Errorf("%w: a transaction of this Store has been open for %v; inside Store.Tx use PutTx and its like: Put would wait for itself", ErrBusy, s.cfg.busy)
			}
			return fmt.Errorf("%w: other writers of this process have kept it for %v", ErrBusy, s.cfg.busy)
		}
	}
	select {
	case <-s.closing:
		<-s.w.turn
		return ErrClosed
	default:
		return nil
	}
}

func (s *Store) transact(ctx context.Context, start time.Time, sync syncing, t *txn, op func(*txn) error) (err error) {
	w := s.w
	defer func() { <-w.turn }()
	if err := s.file.check(); err != nil {
		return err
	}
	if w.lost {
		err := retryBusy(ctx, s.cfg.busy-time.Since(start), func() error { return w.connect(context.Background()) })
		if err != nil {
			return storeError(s.path, err)
		}
		t.q = w.q
	}
	if err := w.setSync(s.cfg.durability == Full || s.cfg.durability == Balanced && bool(sync)); err != nil {
		return storeError(s.path, err)
	}
	plantedClock := s.plantedEarlyClock()
	if err := s.beginImmediate(ctx, start); err != nil {
		return err
	}
	ended := false
	defer func() { // also when op panics or exits its goroutine
		if !ended {
			w.undo(s)
		}
	}()
	t.now = s.nowMillis() // after the lock: a long wait must not shorten a lease
	if plantedClock != 0 {
		t.now = plantedClock
	}
	if err := op(t); err != nil && !plantedSwallow() {
		return storeError(s.path, err)
	}
	if plantedEarlyAnswer() {
		return nil
	}
	if _, err := w.commit.ExecContext(context.Background()); err != nil {
		if commitIsUncertain(err) {
			return fmt.Errorf("%w: the commit failed half way: %w", ErrOutcomeUnknown, storeError(s.path, err))
		}
		return storeError(s.path, err)
	}
	ended = true
	return nil
}

// setSync switches PRAGMA synchronous. It takes effect when it is prepared, so it can't be a cached statement; run like
// this it costs under 1 us.
func (w *writer) setSync(full bool) error {
	if w.full == full {
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

// beginImmediate takes SQLite's write lock, trying again until the busy timeout while another process has it.
func (s *Store) beginImmediate(ctx context.Context, start time.Time) error {
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		_, err := s.w.begin.ExecContext(context.Background())
		if err == nil {
			return nil
		}
		if !isBusy(err) {
			return storeError(s.path, err)
		}
		left := s.cfg.busy - time.Since(start)
		if left <= 0 {
			return fmt.Errorf("%w: another process has held the write lock for %v: %w", ErrBusy, s.cfg.busy, err)
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: another process has the write lock: %w", ErrBusy, ctx.Err())
		case <-s.closing:
			timer.Stop()
			return ErrClosed
		}
	}
}

// undo rolls back. SQLite has done so by itself after some errors, so ROLLBACK's own error says nothing; what counts is
// that the connection is out of the transaction.
func (w *writer) undo(s *Store) {
	_, _ = w.rollback.ExecContext(context.Background())
	if !inTransaction(w.conn) {
		return
	}
	if err := w.reconnect(); err != nil {
		s.cfg.logger.Error("localqueue: the writing connection is lost", "dir", s.dir, "err", err)
	}
}
