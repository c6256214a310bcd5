//go:build unix

package bench

import (
	"math/rand/v2"
	"time"
)

// Roles that do something seldom, so that others wait: what counts is how long the waiting lasts after its reason is gone.
// The instants are in the journals; the parent puts those of two processes together.

// pause lasts between half the task's pause and one and a half, so that it keeps no time with a poll.
func (l *lane) pause() {
	time.Sleep(time.Duration((0.5 + rand.Float64()) * float64(l.task.Pause)))
}

// pace puts a job now and then. It begins when the receivers have had their time of idle waiting.
func (l *lane) pace() error {
	time.Sleep(l.task.Idle)
	for n := 0; !l.over(n); n++ {
		l.pause()
		at, err := l.put()
		if err != nil {
			return err
		}
		l.unit(at, 1)
	}
	return nil
}

// await receives what a pacer puts. First it waits for nothing, to see what that costs.
func (l *lane) await() error {
	if l.task.Idle > 0 {
		measured := make(chan struct{})
		go func() {
			defer close(measured)
			time.Sleep(l.task.Idle / 10) // the wait has begun by then
			began, before := monotonic(), processUsage()
			time.Sleep(l.task.Idle * 8 / 10)
			l.idle, l.idleCPU = time.Duration(monotonic()-began), processUsage().cpu-before.cpu
		}()
		defer func() { <-measured }()
	}
	return l.consume()
}

// crowd puts into a queue that its own last job fills: each put waits until that one is acked.
func (l *lane) crowd() error {
	for n := 0; !l.over(n); n++ {
		at, err := l.putUntil(l.receive)
		if l.receive.Err() != nil && err != nil {
			return nil
		} else if err != nil {
			return err
		}
		l.unit(at, 1)
	}
	return nil
}

// makeRoom gets a job, gives the crowder the time to wait for room, and acks.
func (l *lane) makeRoom() error {
	for n := 0; !l.over(n); n++ {
		jobs, err := l.get(l.receive)
		if l.receive.Err() != nil && err != nil {
			return nil
		} else if err != nil {
			return err
		}
		l.pause()
		at, err := l.ack(jobs)
		if err != nil {
			return err
		}
		l.unit(at, 1)
	}
	return nil
}
