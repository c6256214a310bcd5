//go:build linux && planted

package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

// holding is what a process that is stopped at a point keeps from the others.
type holding int

const (
	nothing     holding = iota // they pass it
	transaction                // writers get ErrBusy at their busy timeout, reading goes on
	schema                     // those who open this directory get ErrBusy
)

// stops says who is stopped at each point, at which passing, and what it keeps from the others there.
var stops = map[string]struct {
	role  string
	count string
	keeps holding
	with  []string // those who bring it to that point
}{
	"after-begin":     {roleProduce, "9", transaction, nil},
	"between-calls":   {roleConsume, "9", transaction, []string{roleProduce}},
	"before-commit":   {roleWork, "9", transaction, []string{roleProduce}},
	"after-commit":    {roleProduce, "9", nothing, nil},
	"while-ringing":   {roleProduce, "9", nothing, nil},
	"while-migrating": {roleMigrate, "2", schema, nil},
	"between-purges":  {rolePurge, "1", nothing, []string{roleProduce, roleConsume}},
	"in-checkpoint":   {roleBatch, "1", nothing, nil},
	"in-vacuum":       {roleVacuum, "1", nothing, nil},
	"in-backup":       {roleBackup, "1", nothing, nil},
	"before-rename":   {roleBackup, "1", nothing, nil},
	"in-import":       {roleImport, "2", transaction, nil},
}

// TestAStoppedProcess stops a process at each point. What it keeps from the others there they get when it goes on, or is
// killed; until then they are told that it is busy, in time.
func TestAStoppedProcess(t *testing.T) {
	for _, point := range killPoints() {
		stop, known := stops[point]
		if !known {
			t.Errorf("what does a process that is stopped at %s keep from the others?", point)
			continue
		}
		for name, then := range map[string]syscall.Signal{"Continued": syscall.SIGCONT, "Killed": syscall.SIGKILL} {
			t.Run(point+"/"+name, func(t *testing.T) {
				t.Parallel()
				// Alone, since another of its goroutines may be in a transaction meanwhile.
				c := newCrew(t, func(o *order) { o.Alone = true })
				me := newOutsider(t, c)
				stopped := c.start(stop.role, "stopped", "LOCALQUEUE_STOP="+point+":"+stop.count)
				for _, role := range stop.with {
					c.start(role, "")
				}
				waitForStop(t, stopped.cmd.Process.Pid)
				me.beside(stop.keeps)
				if err := stopped.cmd.Process.Signal(then); err != nil {
					t.Fatal(err)
				}
				me.after(stop.keeps)
				c.end()
				c.verify(new(account))
			})
		}
	}
}

// waitForStop returns when the process has stopped.
func waitForStop(t *testing.T, pid int) {
	t.Helper()
	stopped := make(chan error, 1)
	go func() {
		stopped <- unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
	}()
	select {
	case err := <-stopped:
		if err != nil {
			t.Fatalf("wait for the process to stop: %v", err)
		}
	case <-time.After(endTime):
		t.Fatal("the process doesn't come to the point at which it is to stop")
	}
}

// outsider is this process, which works beside the one that is stopped.
type outsider struct {
	t *testing.T
	c *crew
	*player
}

func newOutsider(t *testing.T, c *crew) *outsider {
	t.Helper()
	o := &order{Name: "outsider", Dir: c.dir, Journal: c.journalOf("outsider"), Durability: queue.Normal}
	me := &outsider{t, c, &player{order: o, tokens: new(atomic.Int64), rnd: rand.New(rand.NewPCG(1, 2))}}
	var err error
	if me.journal, err = openJournal(o.Journal); err != nil {
		t.Fatal(err)
	}
	if me.store, err = me.open(c.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(me.store.Close(), me.journal.close()); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{brief, typed} { // something to claim, and to purge
		me.puts(name)
	}
	return me
}

func (me *outsider) puts(name string) {
	me.t.Helper()
	j := job{Token: me.token()}
	var failed error
	err := me.tell(entry{Op: opPut, Queue: name, Jobs: []job{j}}, func() ([]job, error) {
		res, err := me.put(context.Background(), name, j.Token, nil)
		failed = err
		return []job{{ID: res.ID}}, err
	})
	if err = errors.Join(err, failed); err != nil {
		me.t.Errorf("a put on %s: %v", name, err)
	}
}

// short is a busy timeout that a test waits out.
const short = 200 * time.Millisecond

// beside is what this process does while the other is stopped.
func (me *outsider) beside(keeps holding) {
	t := me.t
	t.Helper()
	if keeps != schema {
		if _, err := me.queue(bare).Stats(context.Background()); err != nil {
			t.Errorf("reading beside a stopped process: %v", err)
		}
	}
	switch keeps {
	case nothing:
		for range 3 {
			me.puts(bare)
		}
	case transaction:
		hasty, err := queue.Open(me.c.dir, queue.WithBusyTimeout(short))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := hasty.Default().Put(context.Background(), []byte("refused")); !errors.Is(err, queue.ErrBusy) {
				t.Errorf("a put beside a transaction that is stopped: %v, want ErrBusy", err)
			}
		}
		if err := hasty.Close(); err != nil {
			t.Error(err)
		}
	case schema:
		if _, err := queue.Open(me.migrating(), queue.WithBusyTimeout(short)); !errors.Is(err, queue.ErrBusy) {
			t.Errorf("an open beside a migration that is stopped: %v, want ErrBusy", err)
		}
	}
}

// after is what this process does once the other goes on, or is dead.
func (me *outsider) after(keeps holding) {
	t := me.t
	t.Helper()
	me.puts(bare)
	if keeps != schema {
		return
	}
	s, err := queue.Open(me.migrating())
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

// migrating is the directory of the one migration there is.
func (me *outsider) migrating() string {
	dirs, err := filepath.Glob(filepath.Join(me.c.others(), "m*"))
	if err != nil || len(dirs) == 0 {
		me.t.Fatalf("no directory of a migration in %s: %v", me.c.others(), err)
	}
	return dirs[0]
}
