//go:build linux

package queue_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Processes that share a file, one of which is stopped, killed, or doesn't know the line that the others stand in.

func init() {
	roles["contend"] = contend
	roles["open-transaction"] = openTransaction
}

const contendersEnv = "LOCALQUEUE_TEST_CONTEND"

// contend puts, gets and acks as fast as it can and prints a line for each job done, until its stdin ends.
func contend() {
	s, err := queue.Open(os.Getenv(contendersEnv), queue.WithDurability(queue.Normal), queue.WithBusyTimeout(time.Minute))
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	var ended atomic.Bool
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		ended.Store(true)
	}()
	q, _ := s.Queue(fmt.Sprint(os.Getpid()))
	for ctx := context.Background(); !ended.Load(); fmt.Println("done") {
		if _, err = q.Put(ctx, []byte("x")); err != nil {
			break
		}
		var j *queue.Job
		if j, err = q.TryGet(ctx); err != nil {
			break
		}
		if err = j.Ack(ctx); err != nil {
			break
		}
	}
	if err = errors.Join(err, s.Close()); err != nil {
		fmt.Println("error:", err)
	}
}

// openTransaction says that it is inside a transaction, and ends it when its stdin does.
func openTransaction() {
	s, err := queue.Open(os.Getenv(contendersEnv))
	if err == nil {
		err = s.Tx(context.Background(), func(*queue.Tx) error {
			fmt.Println("inside")
			_, err := bufio.NewReader(os.Stdin).ReadString('\n')
			if err != nil && err.Error() == "EOF" {
				err = nil
			}
			return err
		})
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		fmt.Println("error:", err)
	}
}

func startRole(t *testing.T, role, dir string) *process {
	t.Helper()
	return startAs(t, role, contendersEnv+"="+dir)
}

// progress counts what a contender does.
func (p *process) progress() *atomic.Int64 {
	var n atomic.Int64
	go func() {
		for {
			line, err := p.out.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(line, "error") {
				p.t.Error(line)
			}
			n.Add(1)
		}
	}()
	return &n
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	ok(p.t, p.cmd.Process.Signal(sig))
}

// reaches waits until a counter has grown by n, and fails after the usual patience.
func reaches(t *testing.T, what string, c *atomic.Int64, n int64) {
	t.Helper()
	if !grows(c, n, patience) {
		t.Fatalf("%s stands still", what)
	}
}

func grows(c *atomic.Int64, n int64, within time.Duration) bool {
	goal := c.Load() + n
	for deadline := time.Now().Add(within); c.Load() < goal; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func TestOthersGetErrBusyWhileOneIsStoppedInATransactionAndGoOnAfterIt(t *testing.T) {
	for name, end := range map[string]syscall.Signal{"Continued": syscall.SIGCONT, "Killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, dir := context.Background(), t.TempDir()
			s, err := queue.Open(dir, queue.WithBusyTimeout(400*time.Millisecond))
			ok(t, err)
			defer func() { ok(t, s.Close()) }()
			holder := startRole(t, "open-transaction", dir)
			same(t, "the holder is", "inside", holder.hears())
			holder.signal(syscall.SIGSTOP)
			for range 2 {
				if _, err := s.Default().Put(ctx, nil); !errors.Is(err, queue.ErrBusy) {
					t.Errorf("a put while the holder is stopped: %v, want ErrBusy", err)
				}
			}
			ok(t, holder.in.Close()) // it ends its transaction when it runs again
			holder.signal(end)
			waits, err := queue.Open(dir, queue.WithBusyTimeout(patience))
			ok(t, err)
			ok(t, second(waits.Default().Put(ctx, nil)))
			ok(t, waits.Close())
			ok(t, second(s.Default().Put(ctx, nil)))
		})
	}
}

// Wherever a process is stopped: as long as SQLite's own lock is free, the others go on.
func TestOneThatIsStoppedHoldsUpNobodyUnlessItHoldsTheLock(t *testing.T) {
	dir := t.TempDir()
	db, err := openRaw(dir)
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	var all []*process
	var done []*atomic.Int64
	defer func() {
		if t.Failed() {
			for _, p := range all { // one may be stopped, and would never end
				p.signal(syscall.SIGKILL)
			}
		}
	}()
	for range 3 {
		p := startRole(t, "contend", dir)
		all, done = append(all, p), append(done, p.progress())
	}
	for i := range done {
		reaches(t, "a contender", done[i], 5)
	}
	outside := 0
	for round := range 12 {
		stopped := all[round%3]
		time.Sleep(time.Duration(round) * 700 * time.Microsecond) // at different moments
		stopped.signal(syscall.SIGSTOP)
		other := done[(round+1)%3]
		if !grows(other, 3, 2*time.Second) {
			if tx, err := db.BeginTx(context.Background(), nil); err == nil {
				ok(t, tx.Rollback())
				t.Fatal("the lock is free, and the line stands still behind a process that is stopped")
			}
		} else {
			outside++
		}
		stopped.signal(syscall.SIGCONT)
		for i := range done {
			reaches(t, "after the stopped one goes on, a contender", done[i], 3)
		}
	}
	if outside == 0 {
		t.Skip("it was always stopped inside a transaction")
	}
	for _, p := range all {
		ok(t, p.in.Close())
	}
}

func TestAKilledProcessHoldsUpNobody(t *testing.T) {
	dir := t.TempDir()
	survivor := startRole(t, "contend", dir)
	done := survivor.progress()
	for range 8 {
		victim := startRole(t, "contend", dir)
		reaches(t, "the one to be killed", victim.progress(), 5)
		victim.signal(syscall.SIGKILL)
		reaches(t, "the survivor", done, 20)
	}
	ok(t, survivor.in.Close())
}

func TestAWriterThatDoesntKnowTheLineGetsThroughAndDoesNoHarm(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var done []*atomic.Int64
	for range 2 {
		p := startRole(t, "contend", dir)
		done = append(done, p.progress())
		defer func() { ok(t, p.in.Close()) }()
	}
	reaches(t, "a contender", done[0], 5)
	db, err := openRaw(dir)
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	for i := range 20 {
		tx, err := db.BeginTx(ctx, nil)
		ok(t, err)
		ok(t, second(tx.ExecContext(ctx, "INSERT INTO messages (queue, payload, status, max_attempts, available_at, created_at, updated_at) VALUES ('raw', x'01', 0, 1, 0, 0, 0)")))
		ok(t, tx.Commit())
		if i%5 == 0 {
			for _, d := range done {
				reaches(t, "a contender beside a raw writer", d, 3)
			}
		}
	}
}
