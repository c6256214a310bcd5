//go:build linux

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// member is a process of a round.
type member struct {
	order
	plan   string // the point at which it is to die, or anyMoment; "": it isn't
	cmd    *exec.Cmd
	in     io.Closer
	stderr bytes.Buffer
	timer  *time.Timer // kills it, or lets it end
	ending atomic.Bool // it has been told to end
	killed string      // the plan by which it died
}

// end tells the process to end.
func (m *member) end() {
	m.ending.Store(true)
	_ = m.in.Close() // it may have ended by itself
}

// The plans of processes that are killed from outside: those that write all the time, and the rest.
const (
	anyMoment  = "any-moment"
	anyOfOther = "any, of others"
)

// crew starts the processes of a round in one directory, and hears when they end.
type crew struct {
	t       *testing.T
	dir     string // of the queue; journals are beside it
	running []*member
	all     []*member
	gone    chan *member
	setUp   func(*order)
	purged  []string // the queues whose acked jobs are
}

func newCrew(t *testing.T, setUp func(*order)) *crew {
	t.Helper()
	root := t.TempDir()
	c := &crew{t: t, dir: filepath.Join(root, "queue"), gone: make(chan *member), setUp: setUp, purged: []string{brief}}
	for _, dir := range []string{c.dir, filepath.Join(root, "journals"), filepath.Join(root, "backups"), c.others()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(c.clear)
	return c
}

// others is the directory for queues other than the main one.
func (c *crew) others() string { return filepath.Join(filepath.Dir(c.dir), "others") }

func (c *crew) journalOf(name string) string {
	return filepath.Join(filepath.Dir(c.dir), "journals", name)
}

// start starts a process. environ are variables that only it gets.
func (c *crew) start(role, plan string, environ ...string) *member {
	c.t.Helper()
	name := fmt.Sprintf("%s%d", role, len(c.all))
	m := &member{plan: plan, order: order{Name: name, Role: role, Dir: c.dir, Journal: c.journalOf(name), Seed: uint64(time.Now().UnixNano()),
		Durability: queue.Normal, Pace: time.Millisecond, Purged: c.purged}}
	if role == roleMigrate {
		m.Dir, m.Pace = c.others(), 40*time.Millisecond
	}
	if len(c.all)%4 == 0 {
		m.Durability = queue.Balanced
	}
	if c.setUp != nil {
		c.setUp(&m.order)
	}
	text, err := json.Marshal(m.order)
	if err != nil {
		c.t.Fatal(err)
	}
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(childEnviron(), append(environ, orderEnv+"="+string(text))...)
	m.cmd.Stderr = &m.stderr
	// It dies with this process, also while it is stopped.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.running, c.all = append(c.running, m), append(c.all, m)
	go func() {
		_ = m.cmd.Wait() // what it says is in ProcessState
		c.gone <- m
	}()
	return m
}

// childEnviron is this process's environment without what would kill or stop this process.
func childEnviron() []string {
	environ := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "LOCALQUEUE_KILL=") || strings.HasPrefix(v, "LOCALQUEUE_STOP=")
	})
	return append(environ, "GORACE=atexit_sleep_ms=0") // else a binary with the race detector sleeps for a second at its end
}

// left takes note of a process that has ended. Only a kill that was planned is a good end before its time.
func (c *crew) left(m *member, mayEnd bool) {
	c.t.Helper()
	c.running = slices.DeleteFunc(c.running, func(other *member) bool { return other == m })
	if m.timer != nil {
		m.timer.Stop()
	}
	status, _ := m.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL && m.plan != "":
		m.killed = m.plan
	case !mayEnd || !m.cmd.ProcessState.Success():
		c.t.Errorf("process %s ended with %v:\n%s", m.Name, m.cmd.ProcessState, m.stderr.String())
	}
}

// endTime is how long a process may take to end.
const endTime = 30 * time.Second

// end lets all processes end by themselves.
func (c *crew) end() {
	c.t.Helper()
	for _, m := range c.running {
		m.end()
	}
	deadline := time.After(endTime)
	for len(c.running) > 0 {
		select {
		case m := <-c.gone:
			c.left(m, true)
		case <-deadline:
			for _, m := range c.running {
				c.t.Errorf("process %s doesn't end", m.Name)
			}
			return // the rest is for clear
		}
	}
}

// clear leaves no process behind, whatever has become of the test.
func (c *crew) clear() {
	for _, m := range c.running {
		if m.timer != nil {
			m.timer.Stop()
		}
		_ = m.cmd.Process.Kill()
	}
	for range c.running {
		<-c.gone
	}
	c.running = nil
}

// killed are the processes that were, and how.
func (c *crew) killed() map[string]string {
	how := map[string]string{}
	for _, m := range c.all {
		if m.killed != "" {
			how[m.Name] = m.killed
		}
	}
	return how
}
