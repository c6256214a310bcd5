package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// A shape in which the clock steps between any two operations: it jumps away, the Store does other things by the wrong
// time, and it jumps back. Nothing of that may be remembered. Steps that stay are clockCases.

// clockSteps are taken in turns.
var clockSteps = []time.Duration{-time.Hour, time.Hour, -400 * 24 * time.Hour, 26 * time.Hour, -time.Millisecond, 30 * time.Second, -90 * time.Second, 400 * 24 * time.Hour}

// astray begins the name of the queue on which a Store works while its clock is wrong: each has its own, since the clocks of
// two are wrong at different times.
const astray = "astray "

// steppingPeer is a Store whose clock steps before each operation, unless another is under way: that one would see it.
type steppingPeer struct {
	peer *localPeer
	q    *queue.Queue

	mu       sync.Mutex
	underWay int
	steps    int
	cut      int // that had no time, or met a lock
	worked   int // steps that sent a job through the queue
	failed   error
}

func openSteppingStores(n int) func(string, storeOpts, time.Time) ([]peer, error) {
	return func(dir string, o storeOpts, now time.Time) (peers []peer, err error) {
		for i := range n {
			p, err := openStepping(dir, o.numbered(i), now)
			if err != nil {
				return peers, err
			}
			peers = append(peers, p)
		}
		return peers, nil
	}
}

func openStepping(dir string, o storeOpts, now time.Time) (*steppingPeer, error) {
	clock := &fakeClock{}
	clock.set(now)
	p := &steppingPeer{peer: &localPeer{clock: clock}}
	tell := clock.now
	if o.RealClock { // it steps too
		clock.set(time.Unix(0, 0))
		o.RealClock, tell = false, func() time.Time { return time.Now().Add(time.Duration(clock.ns.Load())) }
	}
	s, err := openSeat(dir, o, tell)
	if err != nil {
		return nil, err
	}
	p.peer.seat = s
	p.q, err = s.store.Queue(astray + o.Name)
	return p, err
}

func (p *steppingPeer) call(ctx context.Context, r wireRequest) (out wireResponse) {
	p.mu.Lock()
	deadline, bounded := ctx.Deadline()
	hasTime := !bounded || time.Until(deadline) > time.Second
	if p.underWay == 0 && hasTime && r.Op != "waiting" && r.Op != "shut" {
		p.step(r.Queue)
	}
	p.underWay++
	p.mu.Unlock()
	out = p.peer.call(ctx, r)
	p.mu.Lock()
	p.underWay--
	p.mu.Unlock()
	if r.Op == "queues" {
		out.Stats = withoutAstray(out.Stats)
	}
	return out
}

func withoutAstray(all []queue.Stats) (rest []queue.Stats) {
	for _, s := range all {
		if !strings.HasPrefix(s.Queue, astray) {
			rest = append(rest, s)
		}
	}
	return rest
}

// step moves the clock away, lets the Store look and work, and moves the clock back.
func (p *steppingPeer) step(asked bin) {
	right := p.peer.clock.now()
	defer p.peer.clock.set(right)
	p.peer.clock.set(right.Add(clockSteps[p.steps%len(clockSteps)]))
	p.steps++
	// A case may hold the lock, or have closed the Store.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := p.looks(ctx, asked)
	if err == nil && p.steps%3 == 1 {
		err = p.works(ctx, p.steps%2 == 0)
	}
	if cutShort(err) {
		p.cut++
		err = nil
	}
	if err == nil {
		return
	}
	p.failed = errors.Join(p.failed, fmt.Errorf("while the clock is wrong: %w", err))
}

func cutShort(err error) bool {
	for _, cause := range []error{queue.ErrBusy, queue.ErrClosed, queue.ErrOutcomeUnknown, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// looks reads what the case is about, which changes nothing, and polls a queue without jobs.
func (p *steppingPeer) looks(ctx context.Context, asked bin) error {
	if q, err := p.peer.seat.queue(asked, queueOpts{}); err == nil { // a case may ask for a name that is refused
		if _, err := q.Stats(ctx); err != nil {
			return err
		}
	}
	j, err := p.q.TryGet(ctx)
	if errors.Is(err, queue.ErrEmpty) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.ends(ctx, j) // a step had no time for it
}

// works sends a job through the queue, to a receiver that waits for it or to one that comes later.
func (p *steppingPeer) works(ctx context.Context, waiting bool) error {
	get := func() (*queue.Job, error) { return p.q.Get(ctx) }
	var comes *pending[*queue.Job]
	if waiting { // so that the watcher sees this time
		comes = inBackground(get)
	}
	if _, err := p.q.Put(ctx, nil); err != nil {
		if waiting {
			<-comes.done
		}
		return err
	}
	if !waiting {
		comes = inBackground(get)
	}
	a := <-comes.done
	if a.err != nil {
		return a.err
	}
	p.worked++
	return p.ends(ctx, a.value)
}

func (p *steppingPeer) ends(ctx context.Context, j *queue.Job) error {
	if err := j.Ack(ctx); err != nil {
		return err
	}
	return p.q.Delete(ctx, j.ID)
}

func (p *steppingPeer) setClock(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peer.setClock(now)
}

func (p *steppingPeer) close() error {
	err := errors.Join(p.peer.close(), p.failed)
	if p.steps-p.cut >= 12 && p.worked == 0 {
		err = errors.Join(err, fmt.Errorf("none of %d steps of the clock did any work", p.steps))
	}
	return err
}
