//go:build unix

package bench

import (
	"os/exec"
	"runtime"
)

// thread starts processes from one thread that lives until it is closed: Linux kills a process that asked for it when the
// thread that started it ends.
type thread struct {
	jobs chan func()
	done chan struct{}
}

func newThread() *thread {
	t := &thread{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for f := range t.jobs {
			f()
		}
	}()
	return t
}

func (t *thread) start(cmd *exec.Cmd) error {
	failed := make(chan error, 1)
	t.jobs <- func() { failed <- cmd.Start() }
	return <-failed
}

func (t *thread) close() {
	close(t.jobs)
	<-t.done
}
