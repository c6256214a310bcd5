package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// The suite's server: this test binary in another process, obeying messages from stdin until it ends.

func init() { roles["conformance-server"] = func() { serve(os.Stdin, os.Stdout) } }

// wireMessage goes to a server. World names one directory that the server has open.
type wireMessage struct {
	Seq   int64
	World int64
	Verb  string // open, call, clock, close, cancel

	Dir   string    // open
	Store storeOpts // open
	Now   int64     // open, clock: in nanoseconds
	Call  *wireRequest
	Which int64 // cancel: the call's Seq
}

type wireReply struct {
	Seq int64
	wireResponse
}

// servedWorld is a seat with the clock that its messages set.
type servedWorld struct {
	seat  *seat
	clock *fakeClock
}

type server struct {
	mu      sync.Mutex
	worlds  map[int64]*servedWorld
	cancels map[int64]context.CancelFunc
	out     *json.Encoder
}

func serve(in io.Reader, out io.Writer) {
	s := &server{worlds: map[int64]*servedWorld{}, cancels: map[int64]context.CancelFunc{}, out: json.NewEncoder(out)}
	var busy sync.WaitGroup
	for messages := json.NewDecoder(in); ; {
		var m wireMessage
		if err := messages.Decode(&m); err != nil {
			break
		}
		ctx, cancel := context.WithCancel(context.Background())
		s.mu.Lock()
		if m.Verb == "cancel" {
			if stop := s.cancels[m.Which]; stop != nil {
				stop()
			}
		}
		s.cancels[m.Seq] = cancel
		s.mu.Unlock()
		busy.Go(func() {
			s.answer(m.Seq, s.obey(ctx, m))
			cancel()
		})
	}
	for _, w := range s.worlds { // the test has gone: blocked calls end by this
		_ = w.seat.store.Close()
	}
	busy.Wait()
}

func (s *server) answer(seq int64, r wireResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cancels, seq)
	if err := s.out.Encode(wireReply{Seq: seq, wireResponse: r}); err != nil {
		fmt.Fprintln(os.Stderr, "answer:", err)
	}
}

func (s *server) world(id int64) *servedWorld {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worlds[id]
}

func (s *server) obey(ctx context.Context, m wireMessage) wireResponse {
	w := s.world(m.World)
	if w == nil && m.Verb != "open" && m.Verb != "cancel" {
		return wireFailed(errors.New("no such world"))
	}
	switch m.Verb {
	case "open":
		clock := &fakeClock{}
		clock.set(time.Unix(0, m.Now))
		st, err := openSeat(m.Dir, m.Store, clock.now)
		if err == nil {
			s.mu.Lock()
			s.worlds[m.World] = &servedWorld{seat: st, clock: clock}
			s.mu.Unlock()
		}
		return wireFailed(err)
	case "close":
		s.mu.Lock()
		delete(s.worlds, m.World)
		s.mu.Unlock()
		return wireFailed(w.seat.store.Close())
	case "clock":
		w.clock.set(time.Unix(0, m.Now))
		return wireResponse{}
	case "cancel":
		return wireResponse{}
	}
	if m.Call.Over {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	if m.Call.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.Call.Timeout)
		defer cancel()
	}
	return w.seat.run(ctx, *m.Call)
}
