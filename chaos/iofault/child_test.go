package iofault

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

// order is what the test tells its child to do.
type order struct {
	Do          string           // open, run, series, next or close
	Dir         string           `json:",omitempty"`
	Receipts    map[int64]string `json:",omitempty"` // of the leased jobs there, which reading a damaged file may not tell
	Op          string           `json:",omitempty"` // of operations or series
	Durability  queue.Durability
	Fault       *preload.Fault `json:",omitempty"` // comes while the order is carried out
	Descriptors int            `json:",omitempty"` // that may be opened meanwhile; 0: as usual
}

// report is the child's answer to an order.
type report struct {
	answer
	Series []answer `json:",omitempty"`
	Seen   uint64   `json:",omitempty"` // calls that the fault could have met
	Fired  uint64   `json:",omitempty"` // calls that it has failed
	Logged int      `json:",omitempty"` // lines, since the Store was opened
}

// child carries out orders from stdin, one JSON value each, on one Store at a time.
func child() error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var w world
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r, err := w.underFault(o)
		if err == nil {
			err = out.Encode(r)
		}
		if err != nil {
			return err
		}
	}
}

// underFault carries out an order while its fault is armed.
func (w *world) underFault(o order) (report, error) {
	if o.Descriptors > 0 {
		return withDescriptors(o.Descriptors, func() report { return w.carryOut(o) })
	}
	if o.Fault == nil {
		return w.carryOut(o), nil
	}
	control, err := preload.OpenControl()
	if err != nil {
		return report{}, err
	}
	control.Arm(*o.Fault)
	r := w.carryOut(o)
	control.Disarm()
	r.Seen, r.Fired = control.Seen(), control.Fired()
	return r, control.Close()
}

func (w *world) carryOut(o order) (r report) {
	switch o.Do {
	case "open":
		r.answer = answerOf(w.enter(o))
	case "run":
		r.answer = answerOf(operationNamed(o.Op).run(w))
	case "series":
		var all outcomes
		series[o.Op](w, &all)
		r.Series = all.all
	case "next":
		r.answer = answerOf(w.next())
	case "close":
		r.answer = answerOf(w.s.Close())
	}
	if w.log != nil {
		r.Logged = w.log.count()
	}
	return r
}

// enter opens a Store. Its writers wait for a lock no longer than a test has time.
func (w *world) enter(o order) error {
	log := newCounting()
	s, err := queue.Open(o.Dir, queue.WithDurability(o.Durability), queue.WithBusyTimeout(2*time.Second), queue.WithLogger(slog.New(log)))
	if err == nil {
		*w = world{ctx: context.Background(), s: s, q: s.Default(), receipts: o.Receipts, log: log}
	}
	return err
}

const nextKey = "next"

// next is the same Store's next operation, once the fault is gone: a write and a read, which use different connections.
func (w *world) next() error {
	_, err := w.q.Put(w.ctx, payload(10), queue.JobID(nextKey))
	_, _, err2 := w.q.ShowKey(w.ctx, nextKey)
	return errors.Join(err, err2)
}

// process is a child as the test sees it.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte // closed at its end
}

// startChild starts a child; env is for it alone.
func startChild(t testing.TB, env ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), lines: make(chan []byte, 1)}
	p.cmd.Env = childEnv("child", env...)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	ok(t, err)
	out, err := p.cmd.StdoutPipe()
	ok(t, err)
	ok(t, p.cmd.Start())
	p.in = in
	go func() {
		defer close(p.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			p.lines <- line
		}
	}()
	t.Cleanup(p.end)
	return p
}

// kill leaves everything as the child had it at that moment.
func (p *process) kill(t testing.TB) {
	t.Helper()
	ok(t, p.cmd.Process.Kill())
	p.end()
}

func (p *process) end() {
	_ = p.in.Close()
	for range p.lines {
	}
	_ = p.cmd.Wait()
}

// does gives an order and waits for the report. A child that dies or hangs fails the test.
func (p *process) does(t testing.TB, o order) report {
	t.Helper()
	if o.Do == "open" {
		o.Receipts = receipts(t)
	}
	data, err := json.Marshal(o)
	ok(t, err)
	_, err = p.in.Write(append(data, '\n'))
	ok(t, err)
	select {
	case line, alive := <-p.lines:
		var r report
		if !alive {
			t.Fatalf("the process died of %+v", o)
		}
		ok(t, json.Unmarshal(line, &r))
		return r
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		t.Fatalf("%+v hangs", o)
	}
	return report{}
}
