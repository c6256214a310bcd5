package queue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// batch is what one leader carries through a transaction: its own call and those that wait meanwhile.
type batch struct {
	s        *Store
	own      *call
	calls    []*call
	answered int // calls before this one have had their answer
	rings    []ring
	look     bool

	plantedClock int64
}

// errBroken is the answer to calls whose leader's goroutine ended in the middle of their transaction.
var errBroken = fmt.Errorf("%w: its transaction was broken off and rolled back", ErrIO)

// begin waits for this process's turn and for SQLite's write lock.
func (b *batch) begin(p *patience) error {
	s, w := b.s, b.s.w
	if err := s.file.check(); err != nil {
		return err
	}
	if err := s.mendWriter(p); err != nil {
		return err
	}
	b.plantedClock = s.plantedEarlyClock()
	defer w.blocked.Store(false)
	for pause := 50 * time.Microsecond; ; {
		if w.line != nil {
			if err := w.line.Enter(p); err != nil {
				return err
			}
		}
		// Whether this commit is synced is settled before it begins; calls that need more than that wait for the next.
		err := w.setSync(b.mustSync(b.own.Op) || !b.own.Alone && w.group.Any(b.mustSync))
		if err == nil {
			err = w.begin.run()
		}
		if err == nil {
			return nil
		}
		if !isBusy(err) {
			b.leaveLine()
			return storeError(s.path, err)
		}
		w.blocked.Store(true)
		if w.line != nil && w.line.Busy() {
			continue
		}
		if err := p.Wait(nil, pause); err != nil {
			return err
		}
		pause = min(2*pause, 5*time.Millisecond)
	}
}

func (b *batch) leaveLine() {
	if line := b.s.w.line; line != nil {
		line.Leave(b.s.w.group.Waiting() > 0)
	}
}

func (b *batch) mustSync(o *op) bool {
	return b.s.cfg.durability == Full || b.s.cfg.durability == Balanced && bool(o.sync)
}

// carryOut runs the calls, commits, and answers them. The transaction has begun.
func (b *batch) carryOut() {
	w := b.s.w
	b.calls = append(b.calls, b.own)
	done := false
	defer func() {
		if !done {
			w.undo(b.s)
			b.answer(errBroken)
		}
		b.leaveLine()
	}()
	passing(afterBegin)
	errs, err := b.runAll()
	if len(b.calls) > 1 && blamesStatement(err) {
		w.undo(b.s)
		done = true
		b.oneByOne()
		return
	}
	if err == nil {
		w.group.Ran(b.calls)
		err = b.commit()
	} else {
		err = storeError(b.s.path, err)
	}
	done = true
	if err == nil {
		b.answer(nil, errs...)
		b.s.wrote(b.rows())
		return
	}
	w.undo(b.s)
	if isReadOnly(err) {
		// SQLite opens a file for reading where it can't for writing, which may have been for a moment. If opening fails
		// again, the next write tries.
		_ = w.reconnect()
	}
	b.rings = nil
	b.answer(err)
}

// runAll runs the leader's call and, as long as the transaction doesn't get large, whatever has come meanwhile. errs are the
// calls' own failures; err is one that ends the transaction.
func (b *batch) runAll() (errs []error, err error) {
	t := &txn{s: b.s, q: b.s.w.q}
	t.rings = t.buf[:0]
	weight := maxBatch
	fits := func(o *op) bool { return b.s.w.full || !b.mustSync(o) }
	for from := 0; ; {
		if !b.own.Alone {
			b.calls = b.s.w.group.Take(b.calls, weight-b.own.Weight, fits)
		}
		more := b.calls[from:]
		if len(more) == 0 {
			break
		}
		for _, c := range more {
			if c != b.own {
				weight -= c.Weight
			}
		}
		// The clock is read under the write lock, since a long wait must not shorten a lease, and after all these calls came.
		t.now = b.s.nowMillis()
		if b.plantedClock != 0 {
			t.now = b.plantedClock
		}
		errs = append(errs, make([]error, len(more))...)
		if err := t.run(more, errs[from:]); err != nil {
			return nil, err
		}
		from = len(b.calls)
	}
	b.rings, b.look = t.rings, t.look
	if len(b.calls) == 1 && errs[0] != nil { // nothing but a failure: no commit
		return nil, errs[0]
	}
	return errs, nil
}

func (b *batch) commit() error {
	if plantedEarlyAnswer() {
		b.s.w.undo(b.s)
		return nil
	}
	passing(beforeCommit)
	err := b.s.w.commit.run()
	passing(afterCommit)
	if err == nil {
		return nil
	}
	told := storeError(b.s.path, err)
	if commitIsUncertain(err) {
		return fmt.Errorf("%w: the commit failed half way: %w", ErrOutcomeUnknown, told)
	}
	return told
}

func (b *batch) rows() (n int) {
	for _, c := range b.calls {
		n += c.Op.rows
	}
	return n
}

// answer gives the calls that have none yet their answer: err, or each its own of errs.
func (b *batch) answer(err error, errs ...error) {
	for ; b.answered < len(b.calls); b.answered++ {
		c, e := b.calls[b.answered], err
		if b.answered < len(errs) && e == nil {
			e = errs[b.answered]
		}
		e = plantedAnswer(b.answered, e)
		if !b.s.w.group.Answer(c, e) && e == nil {
			b.s.giveBack(c.Op)
		}
	}
}

// oneByOne gives each call a transaction of its own, after a statement of one of them has spoilt the common one.
func (b *batch) oneByOne() {
	var rings []ring
	for _, c := range b.calls {
		single := &batch{s: b.s, own: &call{Op: c.Op, Alone: true, Weight: c.Weight}}
		err := single.begin(b.s.patience(context.Background()))
		if err == nil {
			single.carryOut()
			err = single.own.Err()
		}
		b.look = b.look || single.look
		rings = append(rings, single.rings...)
		b.answered++
		if !b.s.w.group.Answer(c, err) && err == nil {
			b.s.giveBack(c.Op)
		}
	}
	b.rings = rings
}

// ring wakes those who wait for what the batch has brought.
func (b *batch) ring() {
	if plantedSilence() {
		return
	}
	for _, r := range b.rings {
		passing(whileRinging)
		b.s.bells.ring(r.key, r.n)
	}
	if b.look && b.s.bells.anyone() {
		b.s.bells.look()
	}
}

// giveBack returns jobs that were claimed for a caller who has left.
func (s *Store) giveBack(o *op) {
	if o.claim == nil || len(*o.claim.jobs) == 0 || plantedKeeping() {
		return
	}
	q, jobs := o.claim.q, *o.claim.jobs
	refs := make([]Ref, len(jobs))
	for i, j := range jobs {
		refs[i] = j.Ref()
	}
	go func() {
		_, err := q.ReleaseMany(context.Background(), refs)
		if err != nil && !errors.Is(err, ErrClosed) {
			s.cfg.logger.Error("localqueue: jobs claimed for a caller who left can't be given back; their leases run out", "dir", s.dir, "queue", q.name, "err", err)
		}
	}()
}
