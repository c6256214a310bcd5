//go:build linux

package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

const (
	roleProduce = "produce" // single jobs, keyed ones, delayed ones
	roleBatch   = "batch"   // PutMany
)

func init() {
	roles[roleProduce] = func(ctx context.Context, p *player) error { return p.together(ctx, 2, produce) }
	roles[roleBatch] = func(ctx context.Context, p *player) error { return p.together(ctx, 2, batch) }
}

func produce(ctx context.Context, p *player) error {
	j := job{Token: p.token()}
	opts := []queue.PutOption{queue.MaxRetries(p.rnd.IntN(5))}
	if p.one(8) {
		opts = append(opts, queue.Delay(time.Duration(p.rnd.IntN(200))*time.Millisecond))
	}
	if p.one(8) {
		opts = append(opts, queue.Priority(int16(p.rnd.IntN(3))))
	}
	name := []string{bare, bare, brief, typed}[p.rnd.IntN(4)]
	if name == bare && p.one(4) { // processes meet at these keys, and repeat those of the killed
		j.Key = fmt.Sprint(time.Now().UnixMilli() / 40)
		opts = append(opts, queue.JobID(j.Key))
	}
	return p.tell(entry{Op: opPut, Queue: name, Jobs: []job{j}}, func() ([]job, error) {
		res, err := p.put(ctx, name, j.Token, opts)
		return []job{{ID: res.ID, Dup: res.Duplicate}}, err
	})
}

func (p *player) put(ctx context.Context, name, token string, opts []queue.PutOption) (queue.PutResult, error) {
	if name != typed {
		return p.queue(name).Put(ctx, p.payload(token), opts...)
	}
	q, err := generics.On[task](p.store, typed)
	if err != nil {
		return queue.PutResult{}, err
	}
	return q.Put(ctx, task{Token: token, Pad: p.pad()}, opts...)
}

func batch(ctx context.Context, p *player) error {
	p.pause(ctx, 3*p.Pace) // consumers take one after the other
	e := entry{Op: opPut, Queue: []string{bare, brief}[p.rnd.IntN(2)]}
	var jobs []queue.NewJob
	size := 2 + p.rnd.IntN(20)
	if p.one(15) {
		size = 300 // the WAL is to grow
	}
	for range size {
		token := p.token()
		e.Jobs = append(e.Jobs, job{Token: token})
		jobs = append(jobs, queue.NewJob{Payload: p.payload(token)})
	}
	return p.tell(e, func() (told []job, err error) {
		res, err := p.queue(e.Queue).PutMany(ctx, jobs)
		for _, r := range res {
			told = append(told, job{ID: r.ID, Dup: r.Duplicate})
		}
		return told, err
	})
}

func (p *player) payload(token string) []byte { return []byte(token + "|" + p.pad()) }

// pad makes payloads of different sizes: some are kept in the job's row, some beside it.
func (p *player) pad() string {
	if p.one(20) {
		return strings.Repeat("x", 3000+p.rnd.IntN(3000))
	}
	return strings.Repeat("x", p.rnd.IntN(200))
}
