// Package commit lets many callers share one transaction. A caller joins with its call. If nobody leads, it leads: it takes
// a batch of what waits, carries it out in one transaction and answers every call after the commit. Whoever joins
// meanwhile waits, and is in the next batch or leads it. A lone caller leads at once and meets nobody: it pays for one
// mutex.
//
// The package knows nothing of transactions; the leader brings those.
package commit

import (
	"errors"
	"runtime"
	"sync"
)

// ErrLeft is the answer to a call whose caller gave up before the call was in a batch: nothing of it was done.
var ErrLeft = errors.New("the caller left before its turn")

// Call is one caller's wish. The exported fields are set before Join and not changed after it.
type Call[O any] struct {
	Op     O
	Urgent bool // goes before those that aren't
	Alone  bool // takes no others along, and goes with none: its caller must lead
	Weight int  // what it adds to a transaction, in rows

	ch   chan bool // true: lead; false: answered
	err  error
	done bool // it has run, and waits for the commit and its answer; guarded by the Group's mu, as left
	left bool // its caller is gone
}

// Group is the line of calls of one writer. The zero value is ready.
type Group[O any] struct {
	mu      sync.Mutex
	leading bool
	waiting []*Call[O] // in the order of arrival
	before  int        // calls of the last batch: so many callers may be on their way back
}

// Join adds a call and reports whether its caller leads from now on. A leader must call Pass in the end. Otherwise the
// caller must Wait.
func (g *Group[O]) Join(c *Call[O]) (lead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.leading {
		g.leading = true
		return true
	}
	c.ch = make(chan bool, 1)
	g.waiting = append(g.waiting, c)
	return false
}

// Turn tells the caller of a waiting call what has come: true to lead, false for an answer. Receive from it once.
func (c *Call[O]) Turn() <-chan bool { return c.ch }

// Err is the answer, once it is there.
func (c *Call[O]) Err() error { return c.err }

// Leave takes back a call that waits. It returns false if the call is in a batch already: its answer will come, and
// Abandon is all that is left. A lead that was given meanwhile goes to the next.
func (g *Group[O]) Leave(c *Call[O]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == c {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			c.err = ErrLeft
			return true
		}
	}
	select {
	case lead := <-c.ch:
		if lead {
			c.err = ErrLeft
			g.pass()
			return true
		}
		c.ch <- lead // the answer came first: it counts
	default:
	}
	return false
}

// Ran says that the calls of a batch have run: what they were given is read and what they return is written, and only the
// commit is left.
func (g *Group[O]) Ran(batch []*Call[O]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range batch {
		c.done = true
	}
}

// Abandon says that nobody will hear the answer of a call in a batch. It returns false unless the call has run and has no
// answer yet: before that the leader still reads and writes what is the caller's.
func (g *Group[O]) Abandon(c *Call[O]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.left = c.done
	return c.left
}

// Gather lets callers that were answered just now come back with their next call, so that batches don't alternate between
// one call and all the others. It yields the processor, and stops as soon as that brings nobody.
func (g *Group[O]) Gather() {
	for seen, idle := -1, 0; idle < 2; {
		g.mu.Lock()
		n, enough := len(g.waiting), len(g.waiting)+1 >= g.before
		g.mu.Unlock()
		if enough {
			return
		}
		if n == seen {
			idle++
		}
		seen = n
		runtime.Gosched()
	}
}

// Any reports whether a waiting call fulfils the condition.
func (g *Group[O]) Any(is func(O) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.waiting {
		if !c.Alone && is(c.Op) {
			return true
		}
	}
	return false
}

// Waiting is how many calls wait.
func (g *Group[O]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// Take moves calls that wait into the leader's batch, the urgent ones first, as long as their weight fits and fits(op)
// allows it.
func (g *Group[O]) Take(batch []*Call[O], weight int, fits func(O) bool) []*Call[O] {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, urgent := range []bool{true, false} {
		kept := g.waiting[:0]
		for _, c := range g.waiting {
			if c.Alone || c.Urgent != urgent || c.Weight > weight || !fits(c.Op) {
				kept = append(kept, c)
				continue
			}
			weight -= c.Weight
			batch = append(batch, c)
		}
		clear(g.waiting[len(kept):])
		g.waiting = kept
	}
	return batch
}

// Answer gives a call of the batch its answer, and reports whether its caller is still there to hear it.
func (g *Group[O]) Answer(c *Call[O], err error) (heard bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.err, c.done = err, false
	if c.ch != nil {
		c.ch <- false
	}
	return !c.left
}

// Pass ends the caller's lead: the call that has waited longest leads next. size is how many calls the last batch had.
func (g *Group[O]) Pass(size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = size
	g.pass()
}

func (g *Group[O]) pass() {
	if len(g.waiting) == 0 {
		g.waiting = nil // what a burst has grown
		g.leading = false
		return
	}
	next := g.waiting[0]
	g.waiting[0] = nil
	g.waiting = g.waiting[1:]
	next.ch <- true
}
