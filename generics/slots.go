package generics

import "sync"

// slots is the room for jobs in one run: those in work, whose handlers run or whose results are being stored, and behind
// them those claimed ahead.
type slots struct {
	mu      sync.Mutex
	limit   int // handlers at once
	room    int // jobs held at once
	running map[*hold]struct{}
	ahead   []*hold // oldest first
	closed  bool

	freed chan struct{} // has a value when room was made
	empty chan struct{} // closed once nothing is held after close
	idle  func()        // called when nothing is held
}

func newSlots(limit, ahead int) *slots {
	return &slots{limit: limit, room: limit + ahead, running: map[*hold]struct{}{},
		freed: make(chan struct{}, 1), empty: make(chan struct{})}
}

// free is how many more jobs may be claimed.
func (s *slots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room - len(s.running) - len(s.ahead)
}

// held lists every job in hand.
func (s *slots) held() []*hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	holds := make([]*hold, 0, len(s.running)+len(s.ahead))
	for h := range s.running {
		holds = append(holds, h)
	}
	return append(holds, s.ahead...)
}

// admit takes up claimed jobs and returns those to start now.
func (s *slots) admit(holds []*hold) (start []*hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range holds {
		if len(s.running) < s.limit {
			s.running[h] = struct{}{}
			start = append(start, h)
		} else {
			s.ahead = append(s.ahead, h)
		}
	}
	return start
}

// queue takes up jobs without starting any.
func (s *slots) queue(holds []*hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = append(s.ahead, holds...)
}

// finish frees a job's slot and returns the job to start in it, if one waits.
func (s *slots) finish(h *hold) (next *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, h)
	if len(s.ahead) > 0 {
		next, s.ahead = s.ahead[0], s.ahead[1:]
		s.running[next] = struct{}{}
	}
	s.changed()
	return next
}

// close ends admission and returns the jobs claimed ahead, whose handlers won't run. They count as held until finish.
func (s *slots) close() (ahead []*hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	ahead, s.ahead = s.ahead, nil
	for _, h := range ahead {
		h.conclude()
		s.running[h] = struct{}{}
	}
	s.changed()
	return ahead
}

// abandon gives up on the handlers that are still running and returns their jobs. Those being settled stay.
func (s *slots) abandon() (left []*hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.running {
		if h.abandon() {
			delete(s.running, h)
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
	s.idle = f
	if f != nil && len(s.running) == 0 {
		f()
	}
}

// changed tells those who wait for room or for the end. A job claimed ahead implies a running one.
func (s *slots) changed() {
	select {
	case s.freed <- struct{}{}:
	default:
	}
	if len(s.running) > 0 {
		return
	}
	if s.idle != nil {
		s.idle()
	}
	if s.closed {
		select {
		case <-s.empty:
		default:
			close(s.empty)
		}
	}
}
