//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// signals tells what the user wants: to stop after the first interrupt, to leave at once after the second.
type signals struct {
	stop   chan struct{} // closed at the first
	leave  chan struct{} // closed at the second
	which  atomic.Int32  // the first one's number
	linger atomic.Int64  // how long the process may stay after the second
	code   atomic.Int32  // the exit code after the second
}

func newSignals() *signals {
	return &signals{stop: make(chan struct{}), leave: make(chan struct{})}
}

// catchSignals handles the signals of this process. Those that it was started to ignore (nohup, a shell's background
// job) stay ignored. A broken pipe becomes an error of the write instead of this process's death.
func catchSignals() *signals {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // not Ignore, which commands would inherit
	s := newSignals()
	got := make(chan os.Signal, 3)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(got, sig)
		}
	}
	go func() {
		s.interrupt(<-got)
		s.code.Store(int32(leaveCode(<-got)))
		close(s.leave)
		select {
		case <-got:
		case <-time.After(time.Duration(s.linger.Load())):
		}
		os.Exit(int(s.code.Load()))
	}()
	return s
}

// interrupt asks to stop. It is called once.
func (s *signals) interrupt(sig os.Signal) {
	if n, ok := sig.(syscall.Signal); ok {
		s.which.Store(int32(n))
	}
	close(s.stop)
}

// signal is the one that asked to stop.
func (s *signals) signal() syscall.Signal {
	if n := s.which.Load(); n != 0 {
		return syscall.Signal(n)
	}
	return syscall.SIGTERM
}

// exit is the process's exit code: that of the command line, unless the user couldn't wait for it.
func (s *signals) exit(code int) int {
	if n := s.code.Load(); n != 0 {
		return int(n)
	}
	return code
}

// context ends with the first interrupt.
func (s *signals) context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		<-s.stop
		cancel()
	}()
	return ctx
}

// leaveCode is what a shell says of a process that a signal ended.
func leaveCode(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitError
}
