//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/queue"
)

// order is what a process is told, in its environment.
type order struct {
	Name       string // no two processes of a round have the same
	Role       string
	Dir        string
	Journal    string
	Seed       uint64
	Durability queue.Durability
	Pace       time.Duration // between the calls of a goroutine, on average
	MaxPending int
	Alone      bool     // one goroutine, where a process of that role has several
	Purged     []string // what the purger purges
}

// roles are the parts that a process can play. Each plays until its context ends.
var roles = map[string]func(context.Context, *player) error{}

// The queues of a round. Purging and retention take the acked jobs of brief; Workers claim from typed.
const (
	bare  = "bare"
	brief = "brief"
	typed = "typed"
)

const lease = 300 * time.Millisecond

// player is one goroutine of a process that plays a role.
type player struct {
	*order
	store   *queue.Store
	journal *journal
	rnd     *rand.Rand
	tokens  *atomic.Int64
	late    []*queue.Job // whose leases this one lets run out, to settle them too late
	old     *queue.Job   // the one before
}

// play opens the Store, plays the role until stdin ends, and closes everything. The parent keeps stdin open; it ends with the
// parent, too.
func (o *order) play() (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	quiet := goleak.IgnoreCurrent()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	p := &player{order: o, tokens: new(atomic.Int64), rnd: rand.New(rand.NewPCG(o.Seed, 0))}
	if p.journal, err = openJournal(o.Journal); err != nil {
		return err
	}
	if o.Role != roleMigrate {
		if p.store, err = p.open(o.Dir); err != nil {
			return err
		}
	}
	gauged := p.gauge(ctx)
	err = errors.Join(roles[o.Role](ctx, p), <-gauged)
	if p.store != nil {
		err = errors.Join(err, p.store.Close())
	}
	if err = errors.Join(err, p.journal.close()); err != nil {
		return err
	}
	<-heard
	return goleak.Find(quiet)
}

// gauge writes down how many goroutines there are, twice a second.
func (p *player) gauge(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() {
		every := time.NewTicker(500 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- nil
				return
			case <-every.C:
			}
			if _, err := p.journal.intend(entry{Op: opGauge, Want: runtime.NumGoroutine()}); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

func (p *player) open(dir string) (*queue.Store, error) {
	opts := []queue.Option{queue.WithDurability(p.Durability), queue.WithLease(lease), queue.WithName(p.Name),
		queue.WithBusyTimeout(20 * time.Second)}
	if p.MaxPending > 0 {
		opts = append(opts, queue.WithMaxPending(p.MaxPending))
	}
	return queue.Open(dir, opts...)
}

// together runs n goroutines of the role: callers of one process share commits.
func (p *player) together(ctx context.Context, n int, step func(context.Context, *player) error) error {
	if p.Alone {
		n = 1
	}
	var all sync.WaitGroup
	errs := make([]error, n)
	for g := range n {
		one := *p
		one.rnd = rand.New(rand.NewPCG(p.Seed, uint64(g)+1))
		all.Go(func() {
			for ctx.Err() == nil && errs[g] == nil {
				errs[g] = step(ctx, &one)
				one.pause(ctx, p.Pace)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// pause waits for up to twice d.
func (p *player) pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(p.rnd.Int64N(2 * int64(d)))):
	}
}

// one is true once in n times.
func (p *player) one(n int) bool { return p.rnd.IntN(n) == 0 }

func (p *player) token() string { return fmt.Sprintf("%s-%d", p.Name, p.tokens.Add(1)) }

func (p *player) queue(name string) *queue.Queue {
	q, err := p.store.Queue(name)
	if err != nil {
		panic(err) // the names are ours
	}
	return q
}

// tell writes an intent, makes the call, and writes its answer.
func (p *player) tell(e entry, call func() ([]job, error)) error {
	n, err := p.journal.intend(e)
	if err != nil {
		return err
	}
	jobs, err := call()
	return p.journal.answer(n, kindOf(err), err, jobs...)
}

// note writes down what should not be.
func (p *player) note(format string, args ...any) error {
	_, err := p.journal.intend(entry{Op: opNote, Err: fmt.Sprintf(format, args...)})
	return err
}

// kindOf names an error as the journals do.
func kindOf(err error) string {
	for _, known := range []struct {
		err  error
		kind string
	}{
		{nil, ""}, {queue.ErrOutcomeUnknown, errUnknown}, {queue.ErrLeaseLost, errLost}, {queue.ErrEmpty, errEmpty},
		{context.Canceled, errEnded}, {context.DeadlineExceeded, errEnded},
	} {
		if errors.Is(err, known.err) {
			return known.kind
		}
	}
	return errOther
}
