package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/localqueue/localqueue/db/sqlite"
)

// DBTX is a transaction to take part in: a [*Tx] of this Store, or a *sql.Tx on the same file that the caller opened
// with mattn/go-sqlite3 (without a shared cache).
type DBTX interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// Tx is a transaction on the Store's own writer. It is valid until the function it was given to returns.
type Tx struct {
	t      *txn
	conn   *sql.Conn
	ended  bool
	broken error // what has ended the transaction before its function did
}

// errTxEnded is the answer of a Tx that was kept: its connection is somebody else's turn by now.
var errTxEnded = fmt.Errorf("%w: the function that this Tx was given to has returned", ErrInvalid)

var errTxBroken = errors.New("a statement inside Store.Tx ended the transaction: leave COMMIT and ROLLBACK to Tx, and return after an error")

// usable tells why no statement may run any more. SQLite rolls back by itself when the disk is full or fails; what came after
// that would be committed statement by statement.
func (tx *Tx) usable() error {
	switch {
	case tx.ended:
		return errTxEnded
	case tx.broken == nil && !inTransaction(tx.conn):
		tx.broken = errTxBroken
	}
	return tx.broken
}

// note keeps the error that has ended the transaction: it is the one to be told in the end.
func (tx *Tx) note(err error) error {
	if err != nil && tx.broken == nil && !inTransaction(tx.conn) {
		tx.broken = storeError(tx.t.s.path, err)
	}
	return err
}

// Tx runs fn in one transaction on the Store's writer, in the order of its other writes: statements of the caller's own,
// and PutTx, AckTx and their like. It commits when fn returns nil, and receivers are woken after that; an error or a
// panic undoes everything. After ErrDiskFull, ErrIO and ErrCorrupt SQLite may have done so already: what fn still does is then
// refused, and Tx returns that error. Other writers wait meanwhile, so be brief. The statements' contexts are not obeyed.
//
// Inside fn, calls of the Store other than those that take a Tx would wait for fn itself: they return ErrBusy after the
// busy timeout.
func (s *Store) Tx(ctx context.Context, fn func(tx *Tx) error) error {
	return s.write(ctx, &op{sync: synced, alone: true, run: func(t *txn) error {
		s.w.callersTx.Store(true)
		defer s.w.callersTx.Store(false)
		tx := &Tx{t: t, conn: s.w.conn}
		defer func() { tx.ended = true }()
		if err := fn(tx); err != nil {
			return err
		}
		return tx.usable()
	}})
}

// ExecContext runs a statement of the caller's.
func (tx *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	res, err := tx.conn.ExecContext(context.WithoutCancel(ctx), query, args...)
	return res, tx.note(err)
}

// PrepareContext prepares a statement of the caller's. Close it before the transaction ends.
func (tx *Tx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	return tx.conn.PrepareContext(context.WithoutCancel(ctx), query)
}

// QueryContext runs a query of the caller's. Close the rows before the next statement.
func (tx *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	rows, err := tx.conn.QueryContext(context.WithoutCancel(ctx), query, args...)
	return rows, tx.note(err)
}

// QueryRowContext runs a query of the caller's for one row.
func (tx *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := tx.usable(); err != nil { // a Row carries an error only if its query gives it one
		ended, cancel := context.WithCancelCause(ctx)
		cancel(err)
		return tx.conn.QueryRowContext(ended, query, args...)
	}
	return tx.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// PutTx is Put in a transaction: the job is there when it commits, and gone if it doesn't. WithMaxPending doesn't wait
// here: ErrFull at once. Receivers are woken after the commit, also that of a transaction of the caller's own.
// ErrForeignTx: the transaction is on another file, or of another Store. After ErrDiskFull, ErrIO and ErrCorrupt SQLite has
// rolled back the whole transaction: don't go on with it.
func (q *Queue) PutTx(ctx context.Context, tx DBTX, payload []byte, opts ...PutOption) (res PutResult, err error) {
	spec, err := q.spec(payload, opts)
	if err != nil {
		return res, q.fail("put", err)
	}
	err = q.in(ctx, "put", tx, func(t *txn) (ref Ref, err error) {
		res, err = q.put(t, spec)
		return Ref{ID: res.ID}, err
	})
	return res, err
}

// PutManyTx is PutMany in a transaction. See [Queue.PutTx].
func (q *Queue) PutManyTx(ctx context.Context, tx DBTX, jobs []NewJob) (res []PutResult, err error) {
	specs, err := q.specs(jobs)
	if err != nil || len(specs) == 0 {
		return nil, q.fail("put of a batch", err)
	}
	err = q.in(ctx, "put of a batch", tx, func(t *txn) (ref Ref, err error) {
		res, _, err = q.putMany(t, specs)
		for _, r := range res {
			ref.ID = max(ref.ID, r.ID) // the newest: a duplicate is in the file already
		}
		return ref, err
	})
	return res, err
}

// AckTx is Ack in a transaction: the caller's effects in the same file and the ack commit together, exactly once.
func (q *Queue) AckTx(ctx context.Context, tx DBTX, id int64, receipt string) error {
	ref := Ref{ID: id, Receipt: receipt}
	return q.in(ctx, "ack", tx, func(t *txn) (Ref, error) { return ref, q.ack(t, id, receipt) })
}

// NackTx is Nack in a transaction.
func (q *Queue) NackTx(ctx context.Context, tx DBTX, id int64, receipt string, cause error, opts ...SettleOption) error {
	spec, err := settling(cause, opts, "", Panicked)
	if err != nil {
		return q.fail("nack", err)
	}
	ref := Ref{ID: id, Receipt: receipt}
	return q.in(ctx, "nack", tx, func(t *txn) (Ref, error) { return ref, q.nack(t, id, receipt, spec) })
}

// FailTx is Fail in a transaction.
func (q *Queue) FailTx(ctx context.Context, tx DBTX, id int64, receipt string, cause error, opts ...SettleOption) error {
	spec, err := settling(cause, opts, Permanent, InvalidPayload, Panicked)
	if err != nil {
		return q.fail("fail", err)
	}
	ref := Ref{ID: id, Receipt: receipt}
	return q.in(ctx, "fail", tx, func(t *txn) (Ref, error) { return ref, q.failJob(t, id, receipt, spec) })
}

// ReleaseTx is Release in a transaction.
func (q *Queue) ReleaseTx(ctx context.Context, tx DBTX, id int64, receipt string, opts ...SettleOption) error {
	spec, err := settling(nil, opts, "")
	if err != nil {
		return q.fail("release", err)
	}
	ref := Ref{ID: id, Receipt: receipt}
	return q.in(ctx, "release", tx, func(t *txn) (Ref, error) { return ref, q.release(t, id, receipt, spec) })
}

// in runs an operation in a transaction that was handed in. fn returns what it has put or settled.
func (q *Queue) in(ctx context.Context, op string, tx DBTX, fn func(*txn) (Ref, error)) error {
	if own, ok := tx.(*Tx); ok {
		if err := own.usable(); err != nil {
			return q.fail(op, err)
		}
		if own.t.s != q.s {
			return q.fail(op, fmt.Errorf("%w: it belongs to another Store", ErrForeignTx))
		}
		_, err := fn(own.t)
		return q.fail(op, own.note(storeError(q.s.path, err)))
	}
	same, err := sameDatabase(ctx, tx, q.s.path)
	if err != nil {
		return q.fail(op, storeError(q.s.path, err))
	}
	if !same {
		return q.fail(op, fmt.Errorf("%w: this queue is in %s", ErrForeignTx, q.s.path))
	}
	select {
	case <-q.s.closing:
		return q.fail(op, ErrClosed)
	default:
	}
	t := &txn{s: q.s, q: sqlite.New(tx), now: q.s.nowMillis()}
	ref, err := fn(t)
	if err != nil {
		return q.fail(op, storeError(q.s.path, err))
	}
	q.s.expect(unseen{ref: ref, rings: t.rings, look: t.look})
	return nil
}
