package generics

import (
	"sync"
	"time"
)

// slots is the room for jobs in one run. A job in hand waits for a slot, or its handler runs in one, or its result is
// being stored.
type slots struct {
	mu      sync.Mutex
	pace    pace
	held    map[*hold]struct{} // every job in hand
	running int                // how many of them are in a slot
	ahead   []*hold            // those that wait for one, oldest first
	closed  bool

	wanting chan struct{} // has a value when there may be room to claim for
	empty   chan struct{} // closed once nothing is held after close
	onIdle  func()        // called when nothing is held
}

func newSlots(p pace) *slots {
	return &slots{pace: p, held: map[*hold]struct{}{}, wanting: make(chan struct{}, 1), empty: make(chan struct{})}
}

// room is how many jobs to claim now.
func (s *slots) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomLocked()
}

// roomLocked fills the slots and what may wait for them; as many results may wait to be stored, so that a slot needn't.
// Less than half of what may wait isn't claimed for: few large claims cost less than many small ones.
func (s *slots) roomLocked() int {
	ahead := s.pace.ahead()
	most := s.pace.limit + ahead
	n := min(most-s.running-len(s.ahead), 2*most-len(s.held))
	if n < (ahead+1)/2 {
		return 0
	}
	return n
}

// all lists every job in hand.
func (s *slots) all() []*hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	holds := make([]*hold, 0, len(s.held))
	for h := range s.held {
		holds = append(holds, h)
	}
	return holds
}

// idle reports whether no job is in hand.
func (s *slots) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held) == 0
}

// admit takes up claimed jobs. It returns those to start now, and those to give back.
func (s *slots) admit(holds []*hold) (start, back []*hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range holds {
		s.held[h] = struct{}{}
		s.pace.claimed(h.job)
		switch {
		case s.running < s.pace.limit:
			s.running++
			start = append(start, h)
		case isLast(h.job):
			h.conclude(unstarted)
			back = append(back, h)
		default:
			s.ahead = append(s.ahead, h)
		}
	}
	return start, back
}

// queue takes up jobs without starting any.
func (s *slots) queue(holds []*hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range holds {
		s.held[h] = struct{}{}
	}
	s.ahead = append(s.ahead, holds...)
}

// leave frees the slot of a job whose handler has ended, and returns the job to start in it, if one waits. The first one
// is in hand until finish.
func (s *slots) leave(h *hold) (next *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if took, ran := h.ran(); ran {
		s.pace.ran(took)
	}
	if len(s.ahead) > 0 {
		next, s.ahead = s.ahead[0], s.ahead[1:]
		s.running++
	}
	s.changed()
	return next
}

// finish lets go of a job that has come to its end.
func (s *slots) finish(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, h)
	s.changed()
}

// overdue returns the jobs that wait for a slot if the first of them has waited too long, to be given back.
func (s *slots) overdue(now time.Time) (back []*hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pace.fixed || len(s.ahead) == 0 || now.Sub(s.ahead[0].taken) < aheadPatience {
		return nil
	}
	s.pace.stalled()
	return s.dismiss(unstarted)
}

// close ends admission and returns the jobs that wait for a slot, to be given back.
func (s *slots) close() (back []*hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	back = s.dismiss(verdict{act: release, outcome: Released})
	s.changed()
	return back
}

// dismiss empties the line in front of the slots. Its jobs are in hand until finish.
func (s *slots) dismiss(v verdict) (back []*hold) {
	back, s.ahead = s.ahead, nil
	for _, h := range back {
		h.conclude(v)
	}
	return back
}

// abandon gives up on the handlers that are still running and returns their jobs. Those being settled stay.
func (s *slots) abandon() (left []*hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.held {
		if h.abandon() {
			s.running--
			delete(s.held, h)
			left = append(left, h)
		}
	}
	s.changed()
	return left
}

// whenIdle has f called once nothing is held, at once if that is so now. A later call replaces f.
func (s *slots) whenIdle(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onIdle = f
	if f != nil && len(s.held) == 0 {
		f()
	}
}

// changed tells those who wait for room or for the end.
func (s *slots) changed() {
	if s.roomLocked() > 0 {
		select {
		case s.wanting <- struct{}{}:
		default:
		}
	}
	if len(s.held) > 0 {
		return
	}
	if s.onIdle != nil {
		s.onIdle()
	}
	if s.closed {
		select {
		case <-s.empty:
		default:
			close(s.empty)
		}
	}
}
