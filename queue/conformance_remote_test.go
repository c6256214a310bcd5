package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// remote is one server process, from the side of the test.
type remote struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	seq atomic.Int64

	mu      sync.Mutex
	out     *json.Encoder
	pending map[int64]chan wireResponse
	ended   chan struct{} // closed when the process answers no more
}

const serverCount = 3

// servers starts the processes of the suite once, for all cases.
var servers = sync.OnceValues(func() ([]*remote, error) {
	var all []*remote
	atEnd = append(atEnd, func() (err error) {
		for _, r := range all {
			err = errors.Join(err, r.stop())
		}
		return err
	})
	for range serverCount {
		r, err := startServer()
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
})

func startServer() (*remote, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = roleEnviron("conformance-server")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r := &remote{cmd: cmd, in: in, out: json.NewEncoder(in), pending: map[int64]chan wireResponse{}, ended: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go r.listen(out)
	return r, nil
}

func (r *remote) listen(out io.Reader) {
	defer close(r.ended)
	for replies := json.NewDecoder(out); ; {
		var reply wireReply
		if err := replies.Decode(&reply); err != nil {
			return
		}
		r.mu.Lock()
		ch := r.pending[reply.Seq]
		delete(r.pending, reply.Seq)
		r.mu.Unlock()
		if ch != nil {
			ch <- reply.wireResponse
		}
	}
}

// stop lets the process end by itself; its exit code tells of a race found in it.
func (r *remote) stop() error {
	err := r.in.Close()
	<-r.ended
	return errors.Join(err, r.cmd.Wait())
}

// say sends a message and returns where its answer will come.
func (r *remote) say(m wireMessage) (int64, chan wireResponse, error) {
	m.Seq = r.seq.Add(1)
	ch := make(chan wireResponse, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[m.Seq] = ch
	return m.Seq, ch, r.out.Encode(m)
}

func (r *remote) ask(ctx context.Context, m wireMessage) wireResponse {
	seq, answer, err := r.say(m)
	if err != nil {
		return wireFailed(err)
	}
	done := ctx.Done()
	for {
		select {
		case out := <-answer:
			return out
		case <-r.ended:
			return wireFailed(errors.New("the server process has ended"))
		case <-done:
			done = nil // the answer still comes; the deadline went along with the message
			if errors.Is(ctx.Err(), context.Canceled) {
				if _, _, err := r.say(wireMessage{World: m.World, Verb: "cancel", Which: seq}); err != nil {
					return wireFailed(err)
				}
			}
		case <-time.After(4 * patience):
			return wireFailed(fmt.Errorf("no answer to %s from process %d", m.Verb, r.cmd.Process.Pid))
		}
	}
}

// remotePeer is one directory open in a server.
type remotePeer struct {
	r     *remote
	world int64
}

var worldIDs atomic.Int64

func (r *remote) open(dir string, o storeOpts, now time.Time) (*remotePeer, error) {
	p := &remotePeer{r: r, world: worldIDs.Add(1)}
	out := r.ask(context.Background(), wireMessage{World: p.world, Verb: "open", Dir: dir, Store: o, Now: now.UnixNano()})
	return p, out.Err.error
}

func (p *remotePeer) call(ctx context.Context, q wireRequest) wireResponse {
	if deadline, ok := ctx.Deadline(); ok {
		q.Timeout = max(time.Until(deadline), 1)
	}
	q.Over = errors.Is(ctx.Err(), context.Canceled)
	return p.r.ask(ctx, wireMessage{World: p.world, Verb: "call", Call: &q})
}

func (p *remotePeer) setClock(now time.Time) error {
	return p.r.ask(context.Background(), wireMessage{World: p.world, Verb: "clock", Now: now.UnixNano()}).Err.error
}

func (p *remotePeer) close() error {
	return p.r.ask(context.Background(), wireMessage{World: p.world, Verb: "close"}).Err.error
}
