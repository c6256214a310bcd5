//go:build unix

package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// member is one process of a run, as its parent sees it.
type member struct {
	task    task
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  complaint
	ready   chan struct{} // closed when it can start
	done    chan struct{} // closed when it has exited and been reaped
	killed  atomic.Bool   // by us, on purpose
	outcome outcome       // once done
	err     error         // once done
}

// leaveWait is how long a process that doesn't listen may take to end by itself.
const leaveWait = 5 * time.Second

// launch starts a process, through the thread that outlives it.
func launch(start func(*exec.Cmd) error, command []string, t task) (*member, error) {
	answers, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("a pipe for a process: %w", err)
	}
	m := &member{task: t, ready: make(chan struct{}), done: make(chan struct{})}
	m.cmd = exec.Command(command[0], command[1:]...)
	m.cmd.ExtraFiles = []*os.File{theirs} // descriptor 3 there
	m.cmd.Stderr = &m.stderr
	m.cmd.SysProcAttr = attributes()
	m.stdin, err = m.cmd.StdinPipe()
	if err == nil {
		err = start(m.cmd)
	}
	_ = theirs.Close() // the child has its own
	if err != nil {
		_ = answers.Close()
		return nil, fmt.Errorf("starting a process of the benchmark (%s): %w", command[0], err)
	}
	go m.follow(answers)
	if err := m.tell(t); err != nil {
		select {
		case <-m.done: // it has ended already: it knows why
		case <-time.After(leaveWait):
			m.kill()
			<-m.done
		}
		return nil, cmp.Or(m.err, err)
	}
	return m, nil
}

// follow reads what the process answers, and reaps it.
func (m *member) follow(answers *os.File) {
	defer close(m.done)
	in := json.NewDecoder(answers)
	heard := false
	for {
		var msg message
		if err := in.Decode(&msg); err != nil {
			break
		}
		if msg.Ready {
			close(m.ready)
		}
		if msg.Outcome != nil {
			m.outcome, heard = *msg.Outcome, true
		}
	}
	_ = answers.Close()
	err := m.cmd.Wait()
	switch {
	case m.killed.Load():
	case heard && m.outcome.Error != "":
		m.err = &ProcessError{Role: m.task.Role, Text: m.outcome.Error, Said: m.stderr.said()}
	case err != nil || !heard:
		m.err = &ProcessError{Role: m.task.Role, Text: m.cmd.ProcessState.String(), Said: m.stderr.said()}
	}
}

// ProcessError tells of a process of the run that failed or crashed.
type ProcessError struct {
	Role string
	Text string // its error, or how it ended
	Said string // the beginning of its standard error
}

func (e *ProcessError) Error() string {
	text := fmt.Sprintf("a %s process failed: %s", e.Role, e.Text)
	if first, _, _ := strings.Cut(e.Said, "\n"); first != "" {
		text += ": " + first
	}
	return text
}

func (m *member) tell(t task) error {
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return m.write(string(b))
}

func (m *member) write(line string) error {
	if _, err := io.WriteString(m.stdin, line+"\n"); err != nil {
		return fmt.Errorf("a %s process doesn't listen: %w", m.task.Role, err)
	}
	return nil
}

// kill ends the process at once; what it leaves behind is as after a crash.
func (m *member) kill() {
	m.killed.Store(true)
	_ = m.cmd.Process.Kill() // it may have ended by itself
}

// complaint keeps the beginning of what a process says on standard error: a crash tells its reason first.
type complaint struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const complaintSize = 4 << 10

func (c *complaint) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf.Write(p[:min(len(p), complaintSize-c.buf.Len())])
	return len(p), nil
}

func (c *complaint) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(c.buf.String())
}

var errNotEnded = errors.New("processes of the benchmark have not ended")
