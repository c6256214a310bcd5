package queue

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/localqueue/localqueue/queue/internal/doorbell"
)

// Waiting goes by bells: whoever waits subscribes before it looks, and a commit rings for as many waiters as it has news
// for, so that there is no herd: those of this process first, then, by the doorbell (internal/doorbell), those of others.
// What time brings the bells' one watcher goroutine finds: it sleeps until something falls due. It also reads
// PRAGMA data_version, a counter in shared memory, now and then, for the sake of writers that don't ring.

type bellKind uint8

const (
	forJobs bellKind = iota // receivers
	forRoom                 // puts at WithMaxPending
)

type bellKey struct {
	kind  bellKind
	queue string
}

func (k bellKey) outside() doorbell.Key {
	if k.kind == forRoom {
		return doorbell.KeyOf("room " + k.queue)
	}
	return doorbell.KeyOf("jobs " + k.queue)
}

// waiter is one blocked call. Its channel carries whether the ring should be passed on once it has served.
type waiter struct {
	key    bellKey
	ch     chan bool
	rung   bool // a ring was taken and its news not yet looked for
	passOn bool
}

// line is those who wait for one thing, in the order of arrival.
type line struct {
	waiters   []*waiter
	announced bool // other processes will ring for it
}

type bells struct {
	s       *Store
	out     *doorbell.Bell // nil: none can be had
	waiting atomic.Int64
	deaf    atomic.Bool // other processes can't ring here: look often

	mu      sync.Mutex
	lines   map[bellKey]*line
	changed chan struct{} // to the watcher: look again (a waiter came, or a time changed)

	started  bool
	stopOnce sync.Once
	quit     chan struct{}
	done     chan struct{}
}

func newBells(s *Store) *bells {
	b := &bells{s: s, lines: map[bellKey]*line{}, changed: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	path := filepath.Join(filepath.Dir(s.path), bellFile)
	err := makeBeside(path)
	if err == nil {
		b.out, err = doorbell.Open(path, b.heard)
	}
	if err != nil {
		s.cfg.logger.Warn("localqueue: other processes can't wake this one, nor it them; it looks often instead", "dir", s.dir, "err", err)
		b.deaf.Store(true)
	}
	return b
}

func (b *bells) anyone() bool { return b.waiting.Load() > 0 }

// subscribe joins the line of a key. The caller must look at the file after it, and leave.
func (b *bells) subscribe(key bellKey) *waiter {
	w := &waiter{key: key, ch: make(chan bool, 1)}
	b.mu.Lock()
	l := b.lines[key]
	if l == nil {
		l = &line{}
		b.lines[key] = l
		err := b.out.Listen(key.outside())
		l.announced = err == nil
		if errors.Is(err, doorbell.ErrDeaf) {
			b.deaf.Store(true)
		}
	}
	l.waiters = append(l.waiters, w)
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
	l := b.lines[w.key]
	if i := slices.Index(l.waiters, w); i >= 0 {
		l.waiters = slices.Delete(l.waiters, i, i+1)
		b.waiting.Add(-1)
	}
	if len(l.waiters) == 0 {
		delete(b.lines, w.key)
		if l.announced {
			b.out.Unlisten(w.key.outside())
		}
	}
	b.mu.Unlock()
	again := func(passOn bool) {
		if b.ringHere(w.key, 1, passOn) == 0 && !served {
			b.out.Ring(w.key.outside(), 1)
		}
	}
	if w.rung && (!served || w.passOn) {
		again(w.passOn)
	}
	select {
	case passOn := <-w.ch:
		again(passOn)
	default:
	}
}

// ring wakes n waiters, here or in other processes.
func (b *bells) ring(key bellKey, n int) {
	n -= b.ringHere(key, n, false)
	if !plantedDeafness() {
		b.out.Ring(key.outside(), n)
	}
}

// ringHere wakes the first n of this process that aren't rung yet, and returns how many that were. With passOn each wakes
// the next once it got what it waited for: for news whose size isn't known.
func (b *bells) ringHere(key bellKey, n int, passOn bool) (rung int) {
	if !b.anyone() {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lines[key]
	if l == nil {
		return 0
	}
	for _, w := range l.waiters {
		if rung == n {
			return rung
		}
		select {
		case w.ch <- passOn:
			rung++
		default:
		}
	}
	return rung
}

// heard passes on what another process has rung.
func (b *bells) heard(news doorbell.News) {
	if news.N == 0 {
		return
	}
	for _, k := range b.keys() {
		if k.outside() == news.Key {
			news.N -= b.ringHere(k, news.N, false)
		}
	}
	b.out.Forward(news)
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
		if err := b.out.Close(); err != nil {
			b.s.cfg.logger.Error("localqueue: closing the doorbell", "dir", b.s.dir, "err", err)
		}
	})
}

// keys lists what is waited for.
func (b *bells) keys() []bellKey {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := make([]bellKey, 0, len(b.lines))
	for k := range b.lines {
		keys = append(keys, k)
	}
	return keys
}

// deafPoll is the poll interval of a process that nobody can ring.
const deafPoll = 5 * time.Millisecond

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
		if b.deaf.Load() {
			wait = min(wait, deafPoll)
		}
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
				b.ringHere(k, 1, true)
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
			b.ringHere(k, 1, true)
			continue
		}
		o, err := b.s.read.Outlook(ctx, k.queue)
		if err != nil {
			b.ringHere(k, 1, true)
			continue
		}
		for _, at := range []int64{o.NextDue, o.NextLeaseEnd} {
			if at > now && (next == 0 || at < next) {
				next = at
			}
		}
		// A receiver that waits on a file that is gone would wait for ever; woken, it finds that out.
		if claimable(o.Ready, o.NextDue, o.NextLeaseEnd, o.Paused, now) || b.s.file.check() != nil {
			b.ringHere(k, 1, true)
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
