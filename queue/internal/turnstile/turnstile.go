// Package turnstile is a fair line of processes in front of SQLite's write lock.
//
// SQLite's own waiting is sleeping and trying again: whoever has the lock gets it again while the others sleep. Here a
// process that finds the lock taken draws a ticket, and the tickets are served in order. A turn isn't one transaction but
// a few milliseconds of them, since each change of the process costs wake-ups and a cold page cache; then the process
// draws a new ticket, behind those that wait. While nobody stands in line, nobody draws: a lone process pays for one
// system call.
//
// The line is only manners. What it gets wrong, by a process that was stopped or a file that was removed, costs order and
// some time, never a job: the lock is still SQLite's. So is the waiting for writers that don't know the line.
//
// It lives in a file of its own, in open-file-description locks (fcntl(2), F_OFD_SETLK): a ticket is one locked byte.
// Who waits, waits for the byte of the ticket before its own, so a turn's end wakes one process, and the kernel frees
// the tickets of a process that dies. Those of one that is stopped are passed by.
package turnstile

import (
	"sync"
	"time"
)

// Patience is how long a caller waits.
type Patience interface {
	// Wait blocks until c is closed, at most d. It returns an error once the caller wants to wait no longer.
	Wait(c <-chan struct{}, d time.Duration) error
}

// Times are the line's measures. Defaults are the ones in use.
type Times struct {
	Turn   time.Duration // how long a process may go on while others wait,
	Least  time.Duration // but shorter, down to this,
	Round  time.Duration // if so many wait that all their turns would take longer than this
	Linger time.Duration // how long a turn is kept open for a process that is expected back
	Stall  time.Duration // after how long without any progress the first in line is passed by
}

// Defaults were chosen by measuring: see docs/performance.md.
var Defaults = Times{Turn: 8 * time.Millisecond, Least: 2 * time.Millisecond, Round: 128 * time.Millisecond, Linger: 200 * time.Microsecond, Stall: 250 * time.Millisecond}

// turn is how long a turn is while n processes stand in line.
func (t Times) turn(n int64) time.Duration {
	return min(t.Turn, max(t.Least, t.Round/time.Duration(max(n, 1))))
}

type place int

const (
	outside place = iota
	inLine
	atTurn
)

// Line is one Store's place in the line. One goroutine at a time uses it: the one that leads.
type Line struct {
	times Times

	mu     sync.Mutex // against the timer that ends a turn nobody uses
	desk   *desk
	place  place
	ticket int64
	since  time.Time     // when the turn came
	turn   time.Duration // how long it is
	insist bool          // the lock was taken: stand in line although nobody else does
	noDesk bool          // there was no ticket to be had
	inUse  bool          // between Enter and Leave
	left   time.Time     // the last Leave
	late   int           // how often in a row the process came back later than Linger
	idle   *time.Timer
	closed bool

	watched int64         // the ticket waited for
	gone    chan struct{} // closed when that is gone
}

// Open opens the line's file, or makes it with mode 0600. Where the system has no such locks it returns a Line that lets
// everybody pass.
func Open(path string, times Times) (*Line, error) {
	d, err := openDesk(path)
	if err != nil {
		return nil, err
	}
	l := &Line{times: times, desk: d}
	l.idle = time.AfterFunc(time.Hour, l.endIdle)
	l.idle.Stop()
	return l, nil
}

// Enter waits for this process's turn to try for the lock. An error is the caller's: its patience is over. It then keeps
// its place for the next caller, until Quit.
func (l *Line) Enter(p Patience) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse = true
	now := time.Now()
	if !l.left.IsZero() {
		l.cameBack(now.Sub(l.left))
		l.left = time.Time{}
	}
	if l.place == atTurn && now.Sub(l.since) < l.turn {
		return nil
	}
	if l.place == atTurn {
		l.giveBack()
	}
	if l.place == outside {
		if !l.insist && !l.desk.anyone() {
			return nil
		}
		ticket, ok := l.desk.draw()
		l.noDesk, l.insist = !ok, false
		if !ok {
			return nil
		}
		l.ticket, l.place = ticket, inLine
	}
	return l.stand(p)
}

// Busy says that the lock was taken. It reports whether that calls for standing in line, which the next Enter does;
// otherwise this process is the first already, and has nothing to do but to try again after a pause.
func (l *Line) Busy() (stand bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.insist = l.place == outside && !l.noDesk
	return l.insist
}

// Leave ends a transaction. more says that other callers of this process wait. The turn goes on for them, or for the caller
// that is expected back, until it is used up; while nobody waits behind, there is no turn.
func (l *Line) Leave(more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse = false
	if l.place != atTurn {
		if l.desk.seenAnyone() {
			l.left = time.Now()
		}
		return
	}
	now := time.Now()
	l.left = now
	switch left := l.turn - now.Sub(l.since); {
	case left <= 0, !l.desk.behind(l.ticket):
		l.giveBack()
	case more:
	case l.late < 2: // once may be chance
		l.idle.Reset(min(l.times.Linger, left))
	default:
		l.giveBack()
	}
}

// endIdle gives the turn back when the process didn't come back in time.
func (l *Line) endIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.place != atTurn || l.inUse || l.closed {
		return
	}
	if wait := l.times.Linger - time.Since(l.left); wait > 0 {
		l.idle.Reset(wait)
		return
	}
	l.late = 2
	l.giveBack()
}

// cameBack takes note of the time between a Leave and the next Enter.
func (l *Line) cameBack(after time.Duration) {
	if after < l.times.Linger {
		l.late = 0
	} else {
		l.late++
	}
}

// Quit leaves the line: nobody here wants to write any more.
func (l *Line) Quit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse, l.insist = false, false
	if l.place != outside {
		l.giveBack()
	}
}

// Close leaves the line for good.
func (l *Line) Close() error {
	l.Quit()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.idle.Stop()
	return l.desk.close()
}

func (l *Line) giveBack() {
	l.desk.giveBack(l.ticket)
	l.place = outside
}

// stand waits until no ticket before ours is left. Whenever nothing has moved for Stall, it passes the first one by.
func (l *Line) stand(p Patience) error {
	moved, turns := time.Now(), l.desk.turns()
	for {
		before, any := l.desk.before(l.ticket)
		if !any {
			l.desk.countTurn()
			l.place, l.since = atTurn, time.Now()
			l.turn = l.times.turn(l.desk.drawn() - l.ticket)
			return nil
		}
		if l.gone == nil || l.watched != before {
			l.watched, l.gone = before, l.desk.watch(before)
		}
		gone := l.gone
		l.mu.Unlock()
		err := p.Wait(gone, l.times.Stall/5)
		l.mu.Lock()
		if err != nil {
			return err
		}
		select {
		case <-gone:
			l.gone = nil
		default:
		}
		if n := l.desk.turns(); n != turns {
			moved, turns = time.Now(), n
		} else if time.Since(moved) >= l.times.Stall {
			l.desk.passBy(l.ticket)
			moved, turns = time.Now(), l.desk.turns()
		}
	}
}
