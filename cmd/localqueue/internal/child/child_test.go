//go:build unix

package child

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func spawner(t *testing.T) *Spawner {
	s := NewSpawner()
	t.Cleanup(s.Close)
	return s
}

func shell(script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard,
		Grace: time.Minute, Linger: 20 * time.Millisecond}
}

func term() syscall.Signal { return syscall.SIGTERM }

// writer calls back at the first byte.
type writer struct {
	buf   bytes.Buffer // not embedded: io.Copy would use its ReadFrom
	first func()
}

func (w *writer) String() string { return w.buf.String() }

func (w *writer) Write(p []byte) (int, error) {
	if w.first != nil {
		w.first()
		w.first = nil
	}
	return w.buf.Write(p)
}

func alive(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func TestInputOutputAndExitStatusGoThrough(t *testing.T) {
	c := shell("cat; echo err >&2; exit 7")
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.Repeat([]byte("0123456789"), 1<<20), &out, &errs
	r, err := spawner(t).Run(t.Context(), term, nil, c)
	if err != nil || r.State.ExitCode() != 7 || r.Asked || r.Killed {
		t.Fatalf("%+v %v", r, err)
	}
	if !bytes.Equal(out.Bytes(), c.Stdin) || errs.String() != "err\n" {
		t.Errorf("%d bytes out, %q on stderr", out.Len(), errs.String())
	}
}

func TestInputThatNobodyReadsDoesNotHang(t *testing.T) {
	for _, script := range []string{"exit 0", "exec <&-; echo x", "sleep 60 & echo $!"} { // the last leaves a process that holds all three
		c := shell(script)
		var out bytes.Buffer
		c.Stdin, c.Stdout = make([]byte, 10<<20), &out
		r, err := spawner(t).Run(t.Context(), term, nil, c)
		if err != nil || r.State.ExitCode() != 0 {
			t.Fatalf("%q: %+v %v", script, r, err)
		}
		if pid, _ := strconv.Atoi(strings.TrimSpace(out.String())); pid > 0 {
			if !alive(pid) {
				t.Error("a process left behind by a command that ended by itself was killed")
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestTheWholeGroupIsAskedToEnd(t *testing.T) {
	ask, cancel := context.WithCancel(t.Context())
	c := shell("trap 'wait; exit 3' TERM; sh -c 'trap \"echo inner; exit\" TERM; echo up; while :; do sleep 0.01; done' & wait; wait")
	out := &writer{first: cancel}
	c.Stdout = out
	r, err := spawner(t).Run(ask, term, nil, c)
	if err != nil || !r.Asked || r.Killed || r.State.ExitCode() != 3 {
		t.Fatalf("%+v %v", r, err)
	}
	if !strings.Contains(out.String(), "inner") {
		t.Errorf("the grandchild wasn't asked: %q", out.String())
	}
}

func TestAGrandchildThatIgnoresTheSignalAndHoldsThePipesIsKilled(t *testing.T) {
	ask, cancel := context.WithCancel(t.Context())
	c := shell("sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.01; done' & wait")
	out := &writer{first: cancel}
	c.Stdout, c.Linger = out, time.Minute
	r, err := spawner(t).Run(ask, term, nil, c)
	if err != nil || !r.Asked || r.State.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Fatalf("%+v %v", r, err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(out.String()))
	for deadline := time.Now().Add(10 * time.Second); pid == 0 || alive(pid); time.Sleep(time.Millisecond) { // its pipes close a moment before it is gone
		if time.Now().After(deadline) {
			t.Fatalf("grandchild %d (%q) lives", pid, out.String())
		}
	}
}

func TestACommandThatIgnoresTheSignalIsKilledAfterItsGraceOrOnOrder(t *testing.T) {
	for _, order := range []bool{false, true} {
		ask, cancel := context.WithCancel(t.Context())
		kill := make(chan struct{})
		c := shell("trap '' TERM; echo up; while :; do sleep 0.01; done")
		c.Grace = 30 * time.Millisecond
		if order {
			c.Grace = time.Hour
		}
		c.Stdout = &writer{first: func() {
			cancel()
			if order {
				close(kill)
			}
		}}
		r, err := spawner(t).Run(ask, term, kill, c)
		if err != nil || !r.Asked || !r.Killed || r.State.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%+v %v", r, err)
		}
	}
}

func TestAStopDuringTheStartStillEndsTheCommand(t *testing.T) {
	s := spawner(t)
	for range 50 {
		ask, cancel := context.WithCancel(t.Context())
		go cancel()
		if r, err := s.Run(ask, term, nil, shell("exec sleep 60")); err != nil || !r.Asked {
			t.Fatalf("%+v %v", r, err)
		}
	}
}

func TestACommandThatCannotBeStarted(t *testing.T) {
	c := shell("")
	c.Path = filepath.Join(t.TempDir(), "none")
	_, err := spawner(t).Run(t.Context(), term, nil, c)
	if start := (*StartError)(nil); !errors.As(err, &start) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
