//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// place is a directory with a queue, used by processes and looked at from here.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) place { return place{t, filepath.Join(t.TempDir(), "data")} }

// command is a localqueue process to be.
func (p place) command(args ...string) *exec.Cmd {
	cmd := exec.Command("localqueue", args...)
	cmd.Env = append(os.Environ(), "LOCALQUEUE_DIR="+p.dir, "LOCALQUEUE_QUEUE=")
	cmd.Dir = filepath.Dir(p.dir)
	return cmd
}

// run runs a localqueue to its end and returns what it said.
func (p place) run(want int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if code := exitCode(p.t, err); code != want {
		p.t.Fatalf("%q: exit code %d, want %d\n%s", args, code, want, &errs)
	}
	return out.String(), errs.String()
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// put puts a job and returns its id.
func (p place) put(payload string, args ...string) int64 {
	p.t.Helper()
	out, _ := p.run(0, append(append([]string{"put"}, args...), "--", payload)...)
	id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

// queue opens the directory in this process.
func (p place) queue() *queue.Queue {
	p.t.Helper()
	store, err := queue.Open(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = store.Close() })
	return store.Default()
}

func (p place) show(id int64) *queue.Record {
	p.t.Helper()
	q := p.queue()
	rec, _, err := q.Show(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = q.Store().Close()
	return rec
}

// expect checks where a job stands.
func (p place) expect(id int64, state queue.State, attempts int) {
	p.t.Helper()
	if rec := p.show(id); rec.State != state || rec.Attempts != attempts {
		p.t.Errorf("job %d is %s after %d attempts, want %s after %d (%s)", id, rec.State, rec.Attempts, state, attempts, rec.LastError)
	}
}

// process is a localqueue that runs.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	ended  chan struct{}
	err    error

	mu     sync.Mutex
	stderr bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// start runs a command in the background. Its stdout is read with line.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, ended: make(chan struct{})}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, p.stdout = w, p, bufio.NewReader(r)
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
		_ = r.Close()
	})
	return p
}

const patience = 30 * time.Second

// line waits for the next line of stdout.
func (p *process) line() string {
	p.t.Helper()
	got := make(chan string, 1)
	go func() {
		line, err := p.stdout.ReadString('\n')
		if err != nil {
			line = fmt.Sprintf("no line: %v", err)
		}
		got <- strings.TrimSuffix(line, "\n")
	}()
	select {
	case line := <-got:
		return line
	case <-time.After(patience):
		p.t.Fatalf("no output; stderr: %s", p.said())
		return ""
	}
}

// pid waits for a line with a process's number.
func (p *process) pid() int {
	p.t.Helper()
	line := p.line()
	pid, err := strconv.Atoi(line)
	if err != nil {
		p.t.Fatalf("%q is not a process; stderr: %s", line, p.said())
	}
	p.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// exits waits for the end.
func (p *process) exits(want int) {
	p.t.Helper()
	select {
	case <-p.ended:
		if code := exitCode(p.t, p.err); code != want {
			p.t.Fatalf("exit code %d, want %d\n%s", code, want, p.said())
		}
	case <-time.After(patience):
		p.t.Fatalf("it still runs\n%s", p.said())
	}
}

// eventually waits until something that no event tells is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline, pause := time.Now().Add(patience), time.Millisecond; !so(); pause = min(2*pause, 100*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after %v: %s", patience, what)
		}
		time.Sleep(pause)
	}
}

func alive(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat("/proc/self"); err != nil {
			return syscall.Kill(pid, 0) == nil
		}
		return false
	}
	return err == nil && !strings.Contains(string(b), ") Z ")
}
