package queue

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Waiting inside the process goes by bells: whoever waits subscribes before it looks, and a commit rings for as many
// waiters as it has news for, so that there is no herd. What other processes write, and what time brings, the bells'
// one watcher goroutine finds: it reads PRAGMA data_version, a counter in shared memory, and looks into the queues that
// somebody waits on only when it has moved or something has fallen due.

type bellKind uint8

const (
	forJobs bellKind = iota // receivers
	forRoom                 // puts at WithMaxPending
)

type bellKey struct {
	kind  bellKind
	queue string
}

// waiter is one blocked call. Its channel carries whether the ring should be passed on once it has served.
type waiter struct {
	key    bellKey
	ch     chan bool
	rung   bool // a ring was taken and its news not yet looked for
	passOn bool
}

type bells struct {
	s       *Store
	waiting atomic.Int64

	mu      sync.Mutex
	waiters map[bellKey][]*waiter // in the order of arrival
	changed chan struct{}         // to the watcher: look again (a waiter came, or a time changed)

	started  bool
	stopOnce sync.Once
	quit     chan struct{}
	done     chan struct{}
}

func newBells(s *Store) *bells {
	return &bells{s: s, waiters: map[bellKey][]*waiter{}, changed: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

func (b *bells) anyone() bool { return b.waiting.Load() > 0 }

// subscribe joins the line of a key. The caller must look at the file after it, and leave.
func (b *bells) subscribe(key bellKey) *waiter {
	w := &waiter{key: key, ch: make(chan bool, 1)}
	b.mu.Lock()
	b.waiters[key] = append(b.waiters[key], w)
	b.waiting.Add(1)
	select {
	case <-b.quit:
	default:
		if !b.started {
			b.started = true
			go b.watch()
		}
	}
	b.mu.Unlock()
	b.look()
	return w
}

// wait blocks until the waiter is rung, the context ends or the Store closes.
func (b *bells) wait(ctx context.Context, w *waiter) error {
	w.rung = false
	select {
	case w.passOn = <-w.ch:
		w.rung = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.s.closing:
		return ErrClosed
	}
}

// leave takes a waiter out of its line. A ring it had and didn't use goes to the next one; so does one that is to be
// passed on.
func (b *bells) leave(w *waiter, served bool) {
	b.mu.Lock()
	line := b.waiters[w.key]
	if i := slices.Index(line, w); i >= 0 {
		line = slices.Delete(line, i, i+1)
		b.waiting.Add(-1)
	}
	if len(line) == 0 {
		delete(b.waiters, w.key)
	} else {
		b.waiters[w.key] = line
	}
	b.mu.Unlock()
	if w.rung && (!served || w.passOn) {
		b.ring(w.key, 1, w.passOn)
	}
	select {
	case passOn := <-w.ch:
		b.ring(w.key, 1, passOn)
	default:
	}
}

// ring wakes the first n that aren't rung yet. With passOn each wakes the next once it got what it waited for: for news
// whose size isn't known.
func (b *bells) ring(key bellKey, n int, passOn bool) {
	if !b.anyone() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.waiters[key] {
		if n == 0 {
			return
		}
		select {
		case w.ch <- passOn:
			n--
		default:
		}
	}
}

// look makes the watcher compute anew what falls due next.
func (b *bells) look() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// stop ends the watcher; blocked calls end by the Store's closing channel.
func (b *bells) stop() {
	b.stopOnce.Do(func() {
		b.mu.Lock()
		close(b.quit)
		started := b.started
		b.mu.Unlock()
		if started {
			<-b.done
		}
	})
}

// keys lists what is waited for.
func (b *bells) keys() []bellKey {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := make([]bellKey, 0, len(b.waiters))
	for k := range b.waiters {
		keys = append(keys, k)
	}
	return keys
}

// lookAgain bounds how long the watcher trusts what it knows: a safety net. A longer poll interval is longer patience.
const lookAgain = time.Second

func (b *bells) watch() {
	defer close(b.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	version := dataVersion{s: b.s}
	defer version.close()
	var due int64 // by the Store's clock, in ms: when somebody must look; 0: nothing known
	var looked time.Time
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := b.s.cfg.poll
		if due > 0 {
			wait = min(wait, max(time.Duration(due-b.s.nowMillis())*time.Millisecond, 0))
		}
		asked := false
		if !b.anyone() { // until somebody waits, there is nothing to look for; what was due then is old by now
			select {
			case <-b.quit:
				return
			case <-b.changed:
				version.forget()
				asked, wait = true, 0
			}
		}
		timer.Reset(wait)
		select {
		case <-b.quit:
			return
		case <-b.changed:
			asked = true
		case <-timer.C:
		}
		moved, err := version.moved(ctx)
		if err != nil {
			// The waiters find the error themselves, and say it to their callers.
			for _, k := range b.keys() {
				b.ring(k, 1, true)
			}
			due = b.s.nowMillis() + lookAgain.Milliseconds()
			continue
		}
		if moved || asked || due > 0 && b.s.nowMillis() >= due || time.Since(looked) >= max(lookAgain, b.s.cfg.poll) {
			due = b.runOnce(ctx)
			looked = time.Now()
		}
	}
}

// runOnce looks into every queue that somebody waits on, rings where there is something, and returns when the next thing
// falls due (0: nothing known).
func (b *bells) runOnce(ctx context.Context) (next int64) {
	now := b.s.nowMillis()
	for _, k := range b.keys() {
		if k.kind == forRoom {
			b.ring(k, 1, true)
			continue
		}
		o, err := b.s.read.Outlook(ctx, k.queue)
		if err != nil {
			b.ring(k, 1, true)
			continue
		}
		for _, at := range []int64{o.NextDue, o.NextLeaseEnd} {
			if at > now && (next == 0 || at < next) {
				next = at
			}
		}
		// A receiver that waits on a file that is gone would wait for ever; woken, it finds that out.
		if claimable(o.Ready, o.NextDue, o.NextLeaseEnd, o.Paused, now) || b.s.file.check() != nil {
			b.ring(k, 1, true)
		}
	}
	return next
}

// claimable tells whether a claim would find something to do.
func claimable(ready, nextDue, nextLeaseEnd, paused, now int64) bool {
	ended := nextLeaseEnd > 0 && nextLeaseEnd <= now
	return ended || paused == 0 && (ready != 0 || nextDue > 0 && nextDue <= now)
}

// hotFlag remembers that the last claim found a job: the next then goes straight for the write lock.
type hotFlag struct{ atomic.Bool }
