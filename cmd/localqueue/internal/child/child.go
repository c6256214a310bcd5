//go:build unix

// Package child runs one command per job: in a process group of its own, which is ended as a whole, with its input and
// output never able to hold up the caller.
package child

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Command is what to run.
type Command struct {
	Path   string // of the executable
	Args   []string
	Env    []string
	Stdin  []byte
	Stdout io.Writer
	Stderr io.Writer
	Grace  time.Duration // from the signal that asks the group to end until the one that ends it
	Linger time.Duration // how long to wait, after the command's exit, for output of processes it left behind
}

// Result is how a command ended.
type Result struct {
	State  *os.ProcessState
	Asked  bool // it was asked to end before it did
	Killed bool // it was ended, or what it had left behind was
}

// StartError is why a command could not be started at all.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// Spawner starts commands, all of them from one thread: Linux ends a child with the thread that started it, so this
// thread lives until Close.
type Spawner struct {
	jobs chan func()
	done chan struct{}
}

// NewSpawner starts the thread.
func NewSpawner() *Spawner {
	s := &Spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for f := range s.jobs {
			f()
		}
	}()
	return s
}

// Close ends the thread, and with it, on Linux, every command that still runs.
func (s *Spawner) Close() {
	close(s.jobs)
	<-s.done
}

func (s *Spawner) start(cmd *exec.Cmd) error {
	failed := make(chan error, 1)
	s.jobs <- func() { failed <- cmd.Start() }
	return <-failed
}

// Run runs c to its end. When ask is done the process group gets the signal that sig tells, and c.Grace later, or once
// kill is closed, SIGKILL. What is left of a group that was asked to end is killed when the command itself has exited.
func (s *Spawner) Run(ask context.Context, sig func() syscall.Signal, kill <-chan struct{}, c Command) (Result, error) {
	cmd := &exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, Stdin: bytes.NewReader(c.Stdin), Stdout: c.Stdout, Stderr: c.Stderr,
		WaitDelay: c.Linger, SysProcAttr: attributes()}
	if err := s.start(cmd); err != nil {
		return Result{}, &StartError{err}
	}
	g := &group{id: cmd.Process.Pid}
	ended := make(chan error, 1)
	go func() {
		if awaitExit(g.id) { // not reaped yet, so the group's number can't be another's
			g.close()
			ended <- cmd.Wait()
			return
		}
		err := cmd.Wait()
		g.close()
		ended <- err
	}()

	asked, killed := ask.Done(), kill
	var grace <-chan time.Time
	for {
		select {
		case err := <-ended:
			if cmd.ProcessState == nil {
				return Result{}, err
			}
			return Result{State: cmd.ProcessState, Asked: g.asked, Killed: g.killed}, nil
		case <-asked:
			asked = nil
			g.signal(sig())
			timer := time.NewTimer(c.Grace)
			defer timer.Stop()
			grace = timer.C
		case <-grace:
			grace = nil
			g.signal(syscall.SIGKILL)
		case <-killed:
			killed = nil
			g.signal(syscall.SIGKILL)
		}
	}
}

// group is a process group that may be signalled as long as its number is its own.
type group struct {
	id     int
	mu     sync.Mutex
	asked  bool
	killed bool
	closed bool
}

func (g *group) signal(sig syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.asked = true
	g.killed = g.killed || sig == syscall.SIGKILL
	_ = syscall.Kill(-g.id, sig) // ESRCH: it has just ended
}

// close ends what is left of a group that was asked to end, and lets go of its number.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked {
		_ = syscall.Kill(-g.id, syscall.SIGKILL)
	}
	g.closed = true
}
