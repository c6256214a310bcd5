package generics

import (
	"sync"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Outcome says what became of a job that a Worker had claimed.
type Outcome string

const (
	Acked     Outcome = "acked"     // done
	Nacked    Outcome = "nacked"    // the handler failed; another delivery follows
	Failed    Outcome = "failed"    // to the dead letters: a permanent error, the last delivery's error, or an undecodable payload
	Released  Outcome = "released"  // given back without using up the attempt
	Lost      Outcome = "lost"      // the lease was lost, or the result couldn't be stored before it ended: the result is void
	Panicked  Outcome = "panic"     // the handler panicked; another delivery follows unless this was the last
	Settled   Outcome = "settled"   // the handler settled the job through queue.Queue, the Worker can't tell how
	Abandoned Outcome = "abandoned" // the handler outlived the Worker's stop; the lease runs out by itself
)

// Event is what an [OnDone] hook is told.
type Event struct {
	Job      *queue.Job
	Outcome  Outcome
	Err      error         // the handler's error, a *PanicError, a *DecodeError, or how the lease was lost; nil if none
	Duration time.Duration // from the start of the handler; 0 if it didn't run
}

// Counts is how many jobs have ended in each way since the Worker was made. Each claimed job is counted once; but one that
// is given back because it had to wait too long for a handler is counted only when it has come again.
type Counts struct {
	Acked, Nacked, Failed, Released, Lost, Panicked, Settled, Abandoned int64
}

// Total is the number of jobs that the Worker is done with.
func (c Counts) Total() int64 {
	return c.Acked + c.Nacked + c.Failed + c.Released + c.Lost + c.Panicked + c.Settled + c.Abandoned
}

type counter struct {
	mu     sync.Mutex
	counts Counts
}

func (c *counter) add(o Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o {
	case Acked:
		c.counts.Acked++
	case Nacked:
		c.counts.Nacked++
	case Failed:
		c.counts.Failed++
	case Released:
		c.counts.Released++
	case Lost:
		c.counts.Lost++
	case Panicked:
		c.counts.Panicked++
	case Settled:
		c.counts.Settled++
	case Abandoned:
		c.counts.Abandoned++
	}
}

func (c *counter) read() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}
