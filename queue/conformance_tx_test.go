package queue_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var txCases = []conformanceCase{
	{name: "Rule09_ATransactionStoresAllOrNothing", run: func(t *testing.T, w *world) {
		other := w.on("other")
		w.raw("CREATE TABLE orders (n INTEGER)")
		steps := []wireRequest{sqlStep("INSERT INTO orders VALUES (1)"), w.putStep("a"), other.putStep("b", key("k")), other.putManyStep(spec("c"), spec("d", key("k")))}
		for _, foreign := range []bool{false, true} {
			run := func(undo bool) wireResponse {
				return w.run("tx", wireRequest{Steps: steps, Foreign: foreign, Undo: undo})
			}
			w.ok(run(true).Err.error)
			w.mustBeEmpty()
			other.mustBeEmpty()
			out := run(false)
			w.ok(out.Err.error)
			holder := w.mustStep(out, 2).ID
			w.equal("the key's holder", []queue.PutResult{{ID: holder + 1}, {ID: holder, Duplicate: true}}, out.Steps[3].Puts)
			w.equal("a", w.mustStep(out, 1).ID, w.mustGet().ID)
			w.equal("others", []string{"b", "c"}, other.drain())
			w.ok(other.delete(holder))
		}
		w.equal("the caller's rows", 2, w.number("SELECT count(*) FROM orders"))
	}},
	{name: "Rule09_AFailedStepUndoesAll", run: func(t *testing.T, w *world) {
		j := aRef{1, "1-00000000000000000000000000000000"}
		for _, foreign := range []bool{false, true} {
			for _, bad := range []wireRequest{sqlStep("INSERT INTO no_such_table VALUES (1)"), w.settleStep("ack", j, nil), w.putStep("x", key("")),
				w.options(atMost(1)).putManyStep(spec("x"), spec("y"))} {
				out := w.run("tx", wireRequest{Steps: []wireRequest{w.putStep("a"), bad}, Foreign: foreign})
				if out.Err.error == nil {
					t.Fatalf("step %s passed", bad.Op)
				}
				w.mustBeEmpty()
			}
		}
		w.counts(queue.Stats{})
	}},
	{name: "Rule09_AStatementThatEndsTheTransactionIsNoticed", run: func(t *testing.T, w *world) {
		for _, end := range []string{"COMMIT", "ROLLBACK"} {
			out := w.tx(sqlStep(end))
			w.says(out.Err.error, "ended the transaction")
		}
		w.mustPut("the Store goes on")
		w.mustGet()
	}},
	{name: "Rule09_AnErrorOfTheFunctionComesBackAsItIs", run: func(t *testing.T, w *world) {
		s := openLocalStore(w)
		err := s.Tx(context.Background(), func(tx *queue.Tx) error {
			_, err := s.Default().PutTx(context.Background(), tx, []byte("x"))
			w.ok(err)
			return errBoom
		})
		w.is(err, errBoom)
		w.on("default").mustBeEmpty()
	}},
	{name: "Rule09_APanicInTheFunctionUndoesAllAndPasses", run: func(t *testing.T, w *world) {
		s := openLocalStore(w)
		func() {
			defer func() { w.equal("panic", "boom", recover()) }()
			_ = s.Tx(context.Background(), func(tx *queue.Tx) error {
				_, err := s.Default().PutTx(context.Background(), tx, []byte("x"))
				w.ok(err)
				panic("boom")
			})
		}()
		w.on("default").mustBeEmpty()
		w.on("default").mustPut("y")
	}},
	{name: "Rule09_ATransactionReadsWhatItWrote", run: func(t *testing.T, w *world) {
		s := openLocalStore(w)
		w.ok(s.Tx(context.Background(), func(tx *queue.Tx) error {
			_, err := s.Default().PutTx(context.Background(), tx, []byte("x"))
			w.ok(err)
			var n int
			w.ok(tx.QueryRowContext(context.Background(), "SELECT count(*) FROM messages WHERE queue = ?", "default").Scan(&n))
			w.equal("rows", 1, n)
			stmt, err := tx.PrepareContext(context.Background(), "SELECT ready FROM queues WHERE name = ?")
			w.ok(err)
			w.ok(stmt.QueryRowContext(context.Background(), "default").Scan(&n))
			w.equal("ready", 1, n)
			rows, err := tx.QueryContext(context.Background(), "SELECT id FROM messages WHERE queue = 'default'")
			w.ok(err)
			for rows.Next() {
				n++
			}
			w.equal("rows", 2, n)
			return stmt.Close()
		}))
		w.equal("all", []string{"x"}, w.on("default").drain())
	}},
	{name: "Rule09_PutInsideATransactionOfTheSameStoreIsBusyAndSaysWhy", run: func(t *testing.T, w *world) {
		s := openLocalStore(w, queue.WithBusyTimeout(20*time.Millisecond))
		w.ok(s.Tx(context.Background(), func(tx *queue.Tx) error {
			_, err := s.Default().Put(context.Background(), nil)
			w.is(err, queue.ErrBusy)
			w.says(err, "PutTx")
			return nil
		}))
		_, err := s.Default().Put(context.Background(), nil)
		w.ok(err)
	}},
	{name: "Rule09_ATransactionOnAnotherFileIsRefused", run: func(t *testing.T, w *world) {
		ctx := context.Background()
		q := openLocalStore(w).Default()
		elsewhere, err := queue.Open(t.TempDir())
		w.ok(err)
		defer func() { w.ok(elsewhere.Close()) }()
		foreign := func(tx queue.DBTX) {
			w.is(second(q.PutTx(ctx, tx, nil)), queue.ErrForeignTx)
			w.is(second(q.PutManyTx(ctx, tx, []queue.NewJob{{}})), queue.ErrForeignTx)
			w.is(q.AckTx(ctx, tx, 1, ""), queue.ErrForeignTx)
			w.is(q.NackTx(ctx, tx, 1, "", nil), queue.ErrForeignTx)
			w.is(q.FailTx(ctx, tx, 1, "", nil), queue.ErrForeignTx)
			w.is(q.ReleaseTx(ctx, tx, 1, ""), queue.ErrForeignTx)
		}
		w.ok(elsewhere.Tx(ctx, func(tx *queue.Tx) error { foreign(tx); return nil }))
		w.ok(inForeignTx(ctx, elsewhere.Dir(), func(tx queue.DBTX) error { foreign(tx); return nil }))
		another := openLocalStore(w) // the same file, but another Store's writer
		w.ok(another.Tx(ctx, func(tx *queue.Tx) error { foreign(tx); return nil }))
		w.on("default").mustBeEmpty()
	}},
	{name: "Rule09_AForeignTransactionFindsTheFileByAnyName", run: func(t *testing.T, w *world) {
		link := t.TempDir() + "/link?#%41 é"
		w.ok(os.Symlink(w.dir, link))
		q := openLocalStore(w).Default()
		w.ok(inForeignTx(context.Background(), link, func(tx queue.DBTX) error { return second(q.PutTx(context.Background(), tx, []byte("x"))) }))
		w.equal("all", []string{"x"}, w.on("default").drain())
	}},
	{name: "Rule09_JobsOfAForeignTransactionAreHiddenUntilItsCommit", run: func(t *testing.T, w *world) {
		ctx := context.Background()
		q := openLocalStore(w).Default()
		w.ok(inForeignTx(ctx, w.dir, func(tx queue.DBTX) error {
			w.ok(second(q.PutTx(ctx, tx, []byte("x"))))
			_, err := w.on("default").peek()
			w.is(err, queue.ErrEmpty)
			return nil
		}))
		rec, err := w.on("default").peek()
		w.ok(err)
		w.equal("payload", "x", string(rec.Payload))
	}},
}

// openLocalStore opens one more Store on the world's directory in this process.
func openLocalStore(w *world, opts ...queue.Option) *queue.Store {
	w.t.Helper()
	s, err := queue.Open(w.dir, append([]queue.Option{queue.WithClock(w.clock.now)}, opts...)...)
	w.ok(err)
	w.t.Cleanup(func() { w.ok(s.Close()) })
	return s
}
