package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/localqueue/localqueue/queue/internal/commit"
)

// The one write path. A caller joins the group of those that write (internal/commit). The one that leads waits for this
// process's turn (internal/turnstile) and for the lock, reads the clock, runs every call of its batch, commits, answers
// them all, and rings for those that sleep. Everything that changes the file goes through here.

// syncing says whether a commit must be on the disk before it is answered, where the Store is Balanced.
type syncing bool

const (
	synced   syncing = true  // puts, and whatever moves a job to or from a final state
	unsynced syncing = false // claims, acks and the like: a power cut that takes one only redelivers
)

// maxBatch bounds the rows of one transaction, some 20 ms of work. A call that is larger goes alone.
const maxBatch = 1000

// graceInBatch is how long a caller whose context has ended waits for the commit of the transaction its call is in. While
// statements run it stays in any case: they read its payload and write its results.
const graceInBatch = 50 * time.Millisecond

type call = commit.Call[*op]

// write runs an operation and returns after COMMIT. The context is for the wait, not for the transaction: cancelling a
// statement could roll back half of it.
func (s *Store) write(ctx context.Context, o *op) error {
	p := s.patience(ctx)
	c := &call{Op: o, Urgent: o.urgent && !plantedPatience(), Alone: o.alone, Weight: o.rows + 1}
	lead, err := s.join(p, c)
	if !lead {
		return err
	}
	return s.lead(p, c)
}

// join waits until the call is answered, or is to lead.
func (s *Store) join(p *patience, c *call) (lead bool, err error) {
	if err := p.over(); err != nil {
		return false, err
	}
	group := &s.w.group
	if !group.Join(c) {
		if lead, err = s.follow(p, c); !lead {
			return false, err
		}
	}
	if p.closed() {
		group.Pass(0)
		return false, ErrClosed
	}
	return true, nil
}

// follow waits for the leader's answer, or to lead.
func (s *Store) follow(p *patience, c *call) (lead bool, err error) {
	timer := time.NewTimer(p.left())
	defer timer.Stop()
	select {
	case lead := <-c.Turn():
		return lead, c.Err()
	case <-p.ctx.Done():
		err = fmt.Errorf("%w: other writers came first: %w", ErrBusy, p.ctx.Err())
	case <-s.closing:
		err = ErrClosed
	case <-timer.C:
		err = s.kept()
	}
	if s.w.group.Leave(c) {
		return false, err
	}
	// It is in a transaction. At Close that is finished first; who has no time any more doesn't hear how it ends.
	if errors.Is(err, ErrClosed) {
		<-c.Turn()
		return false, c.Err()
	}
	for gone := false; !gone; gone = s.w.group.Abandon(c) {
		timer.Reset(graceInBatch)
		select {
		case <-c.Turn():
			return false, c.Err()
		case <-timer.C:
		}
	}
	if c.Op.claim != nil { // whatever it gets is given back
		return false, err
	}
	return false, fmt.Errorf("%w: the transaction it is in goes on: %w", ErrOutcomeUnknown, err)
}

// kept is the error of a caller whose busy timeout has passed while others led.
func (s *Store) kept() error {
	switch {
	case s.w.callersTx.Load():
		return fmt.Errorf("%w: a transaction of this Store has been open for %v; inside Store.Tx use PutTx and its like: Put would wait for itself", ErrBusy, s.cfg.busy)
	case s.w.blocked.Load():
		return fmt.Errorf("%w: another process has held the write lock for %v", ErrBusy, s.cfg.busy)
	}
	return fmt.Errorf("%w: other writers of this process have kept it for %v", ErrBusy, s.cfg.busy)
}

// lead carries a batch with the caller's own call through a transaction.
func (s *Store) lead(p *patience, own *call) error {
	b := &batch{s: s, own: own}
	defer func() { // also when a caller's function panics or ends its goroutine
		s.w.group.Pass(len(b.calls))
		b.ring()
	}()
	if !own.Alone {
		s.w.group.Gather()
	}
	if err := b.begin(p); err != nil {
		if s.w.line != nil && s.w.group.Waiting() == 0 {
			s.w.line.Quit()
		}
		return err
	}
	b.carryOut()
	return own.Err()
}

// exclusively runs fn as the leader, outside a transaction.
func (s *Store) exclusively(ctx context.Context, fn func(*patience) error) error {
	p := s.patience(ctx)
	if lead, err := s.join(p, &call{Op: &op{}, Alone: true}); !lead {
		return err
	}
	defer s.w.group.Pass(1)
	if err := s.file.check(); err != nil {
		return err
	}
	if err := s.mendWriter(p); err != nil {
		return err
	}
	return fn(p)
}

// mendWriter connects again where that has failed before. The caller leads.
func (s *Store) mendWriter(p *patience) error {
	if !s.w.lost {
		return nil
	}
	return storeError(s.path, retryBusy(p.ctx, p.left(), func() error { return s.w.connect(context.Background()) }))
}

// patience is how long a caller waits: until its context ends, the Store closes or the busy timeout has passed.
type patience struct {
	s     *Store
	ctx   context.Context
	start time.Time
}

func (s *Store) patience(ctx context.Context) *patience {
	return &patience{s: s, ctx: ctx, start: time.Now()}
}

func (p *patience) left() time.Duration { return p.s.cfg.busy - time.Since(p.start) }

func (p *patience) closed() bool {
	select {
	case <-p.s.closing:
		return true
	default:
		return false
	}
}

func (p *patience) over() error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if p.closed() {
		return ErrClosed
	}
	return nil
}

// Wait blocks until c is closed or d has passed. The error says that the caller waits no longer.
func (p *patience) Wait(c <-chan struct{}, d time.Duration) error {
	left := p.left()
	if left <= 0 {
		return fmt.Errorf("%w: another process has held the write lock for %v", ErrBusy, p.s.cfg.busy)
	}
	timer := time.NewTimer(min(d, left))
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	case <-p.ctx.Done():
		return fmt.Errorf("%w: another process has the write lock: %w", ErrBusy, p.ctx.Err())
	case <-p.s.closing:
		return ErrClosed
	}
	return nil
}
