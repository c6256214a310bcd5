package queue_test

import (
	"errors"
	"fmt"

	"github.com/localqueue/localqueue/queue"
	"pgregory.net/rapid"
)

var errModelUndo = errors.New("undo this")

const modelPanic = "undo this too"

// ackWith acks and puts in one transaction, or neither.
func (mm *modelMachine) ackWith(t *rapid.T) {
	h := mm.handle(t)
	r := mm.ref(t, h)
	to := modelHandle{h.st, h.st.q[rapid.SampledFrom([]string{"q", "lim"}).Draw(t, "put to")]}
	p, undo := mm.drawPut(t, to), rapid.Bool().Draw(t, "undo")
	before := mm.m.clone()
	kind := mm.op(h).ack(r)
	var got, want queue.PutResult
	var putKind string
	var putErr error
	err := h.q.AckWith(mm.ctx, r.ID, r.Receipt, func(tx *queue.Tx) error {
		got, putErr = to.q.PutTx(mm.ctx, tx, p.payload, p.options()...)
		want, putKind = mm.op(to).put(p, got)
		if undo {
			return errModelUndo
		}
		return nil
	})
	if undo && kind == "" {
		if mm.m = before; !errors.Is(err, errModelUndo) {
			modelFail(t, "%s ack with a put, undone: the function's error isn't told: %v", h, err)
		}
		err = nil
	}
	mm.agree(t, fmt.Sprintf("%s ack with a put %v undo=%v %s", h, p, undo, modelRef(r)), nil, nil, err, kind)
	mm.agree(t, "the put with it", got, want, putErr, putKind)
}

// tx runs several operations in one transaction, of the Store or of the caller, and ends it well or not.
func (mm *modelMachine) tx(t *rapid.T) {
	st := mm.store(t, "store")
	end := rapid.SampledFrom([]string{"commit", "error", "panic", "caller's commit", "caller's rollback"}).Draw(t, "end")
	before := mm.m.clone()
	t.Logf("a transaction of %s begins, to end by %s", st.name, end)
	switch end {
	case "caller's commit", "caller's rollback":
		tx, err := mm.foreign.BeginTx(mm.ctx, nil)
		if err != nil {
			modelFail(t, "begin: %v", err)
		}
		defer func() { _ = tx.Rollback() }()
		mm.inTx(t, st, tx)
		if end == "caller's commit" {
			err = tx.Commit()
		} else {
			mm.m, err = before, tx.Rollback()
		}
		mm.agree(t, end, nil, nil, err, "")
	case "panic":
		func() {
			defer func() {
				if p := recover(); p != modelPanic {
					panic(p)
				}
			}()
			_ = st.s.Tx(mm.ctx, func(tx *queue.Tx) error { mm.inTx(t, st, tx); panic(modelPanic) })
		}()
		mm.m = before
	default:
		err := st.s.Tx(mm.ctx, func(tx *queue.Tx) error {
			if mm.inTx(t, st, tx); end == "error" {
				return errModelUndo
			}
			return nil
		})
		if end == "error" {
			if mm.m = before; !errors.Is(err, errModelUndo) {
				modelFail(t, "a transaction that is undone doesn't tell the function's error: %v", err)
			}
			err = nil
		}
		mm.agree(t, end, nil, nil, err, "")
	}
}

func (mm *modelMachine) inTx(t *rapid.T, st *modelStore, tx queue.DBTX) {
	for range rapid.SampledFrom([]int{1, 2, 3, 0}).Draw(t, "operations") {
		h := modelHandle{st, st.q[rapid.SampledFrom([]string{"q", "lim"}).Draw(t, "queue")]}
		switch rapid.SampledFrom([]string{"put", "settle", "batch"}).Draw(t, "in it") {
		case "put":
			p := mm.drawPut(t, h)
			got, err := h.q.PutTx(mm.ctx, tx, p.payload, p.options()...)
			want, kind := mm.op(h).put(p, got)
			mm.agree(t, fmt.Sprintf("  %s put %v", h, p), got, want, err, kind)
		case "batch":
			batch, jobs := mm.drawBatch(t, h)
			got, err := h.q.PutManyTx(mm.ctx, tx, jobs)
			want, kind := mm.op(h).putMany(batch, got)
			mm.agree(t, fmt.Sprintf("  %s put of a batch %v", h, batch), got, want, err, kind)
		default:
			how, r := mm.drawSettle(t), mm.ref(t, h)
			err := how.inTx(h.q, tx, r)
			mm.agree(t, fmt.Sprintf("  %s %s %s", h, how.what, modelRef(r)), nil, nil, err, how.model(mm.op(h), r))
		}
	}
}
