package queue_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Faults that users of such systems have reported, numbered, each with the processes it takes. The suite runs them
// small; LOCALQUEUE_CASES=full runs them at the size in which they were reported.

func sized(small, full int) int {
	if os.Getenv("LOCALQUEUE_CASES") == "full" {
		return full
	}
	return small
}

func init() {
	roles["obey"] = obey
}

// obey does what each line of stdin says, and answers with a line: a process as a test needs it.
func obey() {
	lines := bufio.NewScanner(os.Stdin)
	var held func() error
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		answer := "ok"
		var err error
		switch verb, dir := words[0], words[1]; verb {
		case "put": // open, put, close, as a shell command does
			answer, err = putOnce(dir, words[2:])
		case "hold":
			held, err = holdLock(dir)
		case "pin":
			held, err = pinSnapshot(dir)
		case "release":
			err = held()
		case "visit": // open and close
			var s *queue.Store
			if s, err = queue.Open(dir); err == nil {
				err = s.Close()
			}
		case "die": // claim, say which attempt it is, and die of it
			answer, err = claim(dir)
			if err == nil {
				fmt.Println(answer)
				err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
		if err != nil {
			answer = "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
}

func putOnce(dir string, keys []string) (string, error) {
	s, err := queue.Open(dir)
	if err != nil {
		return "", err
	}
	var opts []queue.PutOption
	if len(keys) > 0 {
		opts = append(opts, queue.JobID(keys[0]))
	}
	res, err := s.Default().Put(context.Background(), []byte("x"), opts...)
	return strconv.FormatInt(res.ID, 10), errors.Join(err, s.Close())
}

func holdLock(dir string) (release func() error, err error) {
	db, err := openRaw(dir)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(tx.Rollback(), db.Close()) }, nil
}

// pinSnapshot begins to read, and keeps what it sees.
func pinSnapshot(dir string) (release func() error, err error) {
	db, err := openRaw(dir)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	var n int
	for _, statement := range []string{"BEGIN DEFERRED", "SELECT count(*) FROM queues"} {
		if err = conn.QueryRowContext(context.Background(), statement).Scan(&n); errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
	return func() error { return errors.Join(conn.Close(), db.Close()) }, nil
}

const shortLease = 150 * time.Millisecond

func claim(dir string) (string, error) {
	s, err := queue.Open(dir, queue.WithLease(shortLease))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	j, err := s.Default().Get(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprint("attempt ", j.Attempt), nil
}

// process is another process that obeys.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startProcess(t testing.TB) *process {
	t.Helper()
	return startAs(t, "obey")
}

func startAs(t testing.TB, role string, environ ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = roleEnviron(role, environ...)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	ok(t, err)
	out, err := p.cmd.StdoutPipe()
	ok(t, err)
	p.in, p.out = in, bufio.NewReader(out)
	ok(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		if err := p.cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
			t.Error(err)
		}
	})
	return p
}

func startProcesses(t testing.TB, n int) (all []*process) {
	t.Helper()
	for range n {
		all = append(all, startProcess(t))
	}
	return all
}

func (p *process) tell(words ...string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in, strings.Join(words, "\t"))
	ok(p.t, err)
}

// hears returns the answer to what it was told; an empty one if the process has died.
func (p *process) hears() string {
	p.t.Helper()
	line := inBackground(func() (string, error) { return p.out.ReadString('\n') })
	answer, err := line.await(p.t)
	if err != nil && !errors.Is(err, io.EOF) {
		p.t.Fatal(err)
	}
	return strings.TrimSuffix(answer, "\n")
}

func (p *process) does(words ...string) {
	p.t.Helper()
	p.tell(words...)
	if answer := p.hears(); strings.HasPrefix(answer, "error") {
		p.t.Fatalf("%s: %s", words[0], answer)
	}
}
