package generics

import (
	"time"

	"github.com/localqueue/localqueue/queue"
)

const (
	// aheadSpan is how far ahead a Worker claims by itself: what its handlers will begin with within this time. A claim
	// takes about a millisecond, so more would gain nothing, and would keep jobs from other Workers.
	aheadSpan = 50 * time.Millisecond
	// aheadPatience is when jobs that wait in spite of that, since a handler takes longer than those before it, are given
	// back to the queue for others.
	aheadPatience = 10 * aheadSpan
	// carefulFor is how many jobs a Worker begins one by one after it was given one that must not wait (see wary). More than
	// one Worker holds by default, so that all that was lost with it comes in careful times.
	carefulFor = 100
)

// pace says how many jobs to claim ahead. It belongs to the slots, under their lock.
type pace struct {
	limit   int           // handlers at once
	most    int           // jobs ahead
	fixed   bool          // most, however long handlers take
	mean    time.Duration // how long handlers take, the latest counting most; negative: not known yet
	careful int           // this many jobs are to begin before any is claimed ahead
}

func newPace(c config) pace {
	p := pace{limit: c.concurrency, most: c.ahead, fixed: c.aheadSet, mean: -1}
	if !p.fixed && c.heartbeatOff {
		p.most = 0 // nobody would keep their leases
	}
	return p
}

// ahead is how many jobs may wait for a slot.
func (p *pace) ahead() int {
	switch {
	case p.careful > 0:
		return 0
	case p.fixed:
		return p.most
	case p.mean < 0, p.mean > aheadSpan:
		return 0
	}
	return int(min(int64(p.most), int64(p.limit)*int64(aheadSpan)/max(int64(p.mean), 1)))
}

// ran notes how long a handler took.
func (p *pace) ran(took time.Duration) {
	p.careful = max(p.careful-1, 0)
	if took = min(took, aheadPatience); p.mean < 0 {
		p.mean = took
	} else {
		p.mean += (took - p.mean) / 8
	}
}

// stalled notes that handlers take much longer than was thought.
func (p *pace) stalled() { p.mean = aheadPatience }

// claimed notes a delivered job. If it was delivered before, jobs may be coming back from a process that died, and one of
// them may be what killed it: the others should not lose a delivery each time it does.
func (p *pace) claimed(j *queue.Job) {
	if j.Attempt > 1 || isLast(j) {
		p.careful = carefulFor
	}
}

// isLast reports whether a job is on its last delivery. Such a job doesn't wait for a slot: it would go to the dead letters
// without having been run if this process died.
func isLast(j *queue.Job) bool { return j.Attempt >= j.MaxAttempts }
