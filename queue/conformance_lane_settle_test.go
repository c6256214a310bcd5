package queue_test

import (
	"errors"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// settleOpt is an option of a settling operation.
type settleOpt func(*wireRequest)

func after(d time.Duration) settleOpt  { return func(r *wireRequest) { r.Delay = &d } }
func as(reason queue.Reason) settleOpt { return func(r *wireRequest) { r.As = &reason } }

var errBoom = errors.New("boom")

func settleRequest(ref queue.Ref, cause error, opts []settleOpt) wireRequest {
	r := wireRequest{ID: ref.ID, Receipt: bin(ref.Receipt)}
	if cause != nil {
		text := bin(cause.Error())
		r.Cause = &text
	}
	for _, o := range opts {
		o(&r)
	}
	return r
}

// A delivery is settled by its job, or by any id and receipt.
type delivery interface{ Ref() queue.Ref }

type aRef queue.Ref

func (r aRef) Ref() queue.Ref { return queue.Ref(r) }

func (l *lane) ack(d delivery) error { return l.run("ack", settleRequest(d.Ref(), nil, nil)).Err.error }

func (l *lane) nack(d delivery, cause error, opts ...settleOpt) error {
	return l.run("nack", settleRequest(d.Ref(), cause, opts)).Err.error
}

func (l *lane) fail(d delivery, cause error, opts ...settleOpt) error {
	return l.run("fail", settleRequest(d.Ref(), cause, opts)).Err.error
}

func (l *lane) release(d delivery, opts ...settleOpt) error {
	return l.run("release", settleRequest(d.Ref(), nil, opts)).Err.error
}

func (l *lane) extend(d delivery, by time.Duration) (time.Time, error) {
	r := settleRequest(d.Ref(), nil, nil)
	r.For = by
	out := l.run("extend", r)
	if len(out.Until) == 0 {
		return time.Time{}, out.Err.error
	}
	return out.Until[0], out.Err.error
}

func (l *lane) many(op string, refs []queue.Ref, cause error, opts ...settleOpt) ([]error, error) {
	r := settleRequest(queue.Ref{}, cause, opts)
	r.Refs = refs
	out := l.run(op, r)
	return out.each(), out.Err.error
}

func (l *lane) ackMany(refs ...queue.Ref) ([]error, error) { return l.many("ackMany", refs, nil) }

func (l *lane) heartbeat(by time.Duration, refs ...queue.Ref) (until []time.Time, errs []error, err error) {
	out := l.run("heartbeat", wireRequest{Refs: refs, For: by})
	return out.Until, out.each(), out.Err.error
}

func (l *lane) held(refs ...queue.Ref) ([]bool, error) {
	out := l.run("held", wireRequest{Refs: refs})
	return out.Held, out.Err.error
}

// tx carries out steps in one transaction of a Store.
func (l *lane) tx(steps ...wireRequest) wireResponse { return l.run("tx", wireRequest{Steps: steps}) }

// foreignTx carries out steps in a *sql.Tx of the caller's.
func (l *lane) foreignTx(steps ...wireRequest) wireResponse {
	return l.run("tx", wireRequest{Steps: steps, Foreign: true})
}

// mustStep is what a step that puts one job answered.
func (w *world) mustStep(r wireResponse, i int) queue.PutResult {
	w.t.Helper()
	w.ok(r.Err.error)
	if i >= len(r.Steps) || len(r.Steps[i].Puts) != 1 {
		w.t.Fatalf("no put in step %d of %+v", i, r)
	}
	return r.Steps[i].Puts[0]
}

func (l *lane) ackWith(d delivery, steps ...wireRequest) error {
	r := settleRequest(d.Ref(), nil, nil)
	r.Steps = steps
	return l.run("ackWith", r).Err.error
}

// The steps of a transaction.

func (l *lane) putStep(payload string, opts ...jobOpt) wireRequest {
	return wireRequest{Op: "put", Queue: l.queue, With: l.with, Jobs: []jobSpec{spec(payload, opts...)}}
}

func (l *lane) putManyStep(jobs ...jobSpec) wireRequest {
	return wireRequest{Op: "putMany", Queue: l.queue, With: l.with, Jobs: jobs}
}

func (l *lane) settleStep(op string, d delivery, cause error, opts ...settleOpt) wireRequest {
	r := settleRequest(d.Ref(), cause, opts)
	r.Op, r.Queue, r.With = op, l.queue, l.with
	return r
}

func sqlStep(statement string) wireRequest { return wireRequest{Op: "sql", SQL: statement} }
