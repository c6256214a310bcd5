package queue

import (
	"context"
	"sync"
	"time"

	"github.com/localqueue/localqueue/db/sqlite"
)

// A transaction of the caller's own commits out of our sight: its news must be rung after that. Until each is to be seen in
// the file, a goroutine looks every few ms.

const (
	foreignLook = 5 * time.Millisecond
	// foreignWait is how long a transaction may stay open for its news to be rung; later they are found by the poll.
	foreignWait = time.Minute
)

// unseen is what an operation in a foreign transaction has changed: the job it put (no receipt), or the delivery it
// settled.
type unseen struct {
	ref   Ref
	rings []ring
	look  bool
	since time.Time
}

type foreignNews struct {
	mu      sync.Mutex
	unseen  []unseen
	running bool
	done    chan struct{}
}

func (s *Store) expect(u unseen) {
	if len(u.rings) == 0 && !u.look {
		return
	}
	u.since = time.Now()
	f := &s.foreign
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unseen = append(f.unseen, u)
	if !f.running {
		f.running, f.done = true, make(chan struct{})
		go s.watchForeign(f.done)
	}
}

func (s *Store) watchForeign(done chan struct{}) {
	defer close(done)
	version := dataVersion{s: s}
	defer version.close()
	tick := time.NewTicker(foreignLook)
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
		}
		moved, err := version.moved(context.Background())
		if s.ringSeen(moved || err != nil) {
			return
		}
	}
}

// ringSeen rings for what is in the file by now, and reports whether nothing is left to wait for.
func (s *Store) ringSeen(look bool) bool {
	f := &s.foreign
	f.mu.Lock()
	defer f.mu.Unlock()
	left := f.unseen[:0]
	for _, u := range f.unseen {
		switch {
		case look && s.isSeen(u.ref):
			for _, r := range u.rings {
				s.bells.ring(r.key, r.n)
			}
			s.bells.look()
		case time.Since(u.since) < foreignWait:
			left = append(left, u)
		}
	}
	f.unseen = left
	f.running = len(left) > 0
	return !f.running
}

func (s *Store) isSeen(ref Ref) bool {
	row, err := s.read.WhyLost(context.Background(), sqlite.WhyLostParams{ID: ref.ID})
	if ref.Receipt == "" {
		return err == nil
	}
	return err != nil || deref(row.Receipt) != ref.Receipt
}

// stop waits for the watcher to see that the Store is closing.
func (f *foreignNews) stop() {
	f.mu.Lock()
	done := f.done
	f.mu.Unlock()
	if done != nil {
		<-done
	}
}
