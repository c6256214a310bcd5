//go:build linux

package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const roleConsume = "consume" // the bare calls: Get, Ack, Nack and their like

func init() {
	roles[roleConsume] = func(ctx context.Context, p *player) error { return p.together(ctx, 3, consume) }
}

func consume(ctx context.Context, p *player) error {
	if len(p.late) > 0 && time.Now().After(p.late[0].LeaseUntil.Add(lease/4)) {
		j := p.late[0]
		p.late = p.late[1:]
		return p.settle(j) // with a receipt whose time is over
	}
	jobs, err := p.claim(ctx, []string{bare, bare, brief}[p.rnd.IntN(3)])
	for _, j := range jobs {
		if err == nil && p.old != nil && p.one(10) {
			err = p.forge(j)
		}
		if err == nil {
			err = p.finish(j)
		}
		p.old = j
	}
	if len(jobs) == 0 {
		p.pause(ctx, time.Millisecond)
	}
	return err
}

// claim gets jobs in one of the three ways.
func (p *player) claim(ctx context.Context, name string) (jobs []*queue.Job, err error) {
	q, want := p.queue(name), 1
	way := p.rnd.IntN(3)
	if way == 1 {
		want = 2 + p.rnd.IntN(4)
	}
	err = p.tell(entry{Op: opClaim, Queue: name, Want: want}, func() (told []job, err error) {
		switch way {
		case 0:
			jobs, err = one(q.TryGet(ctx))
		case 1:
			jobs, err = q.TryGetMany(ctx, want)
		case 2: // it may give up in the middle of the claim
			ctx, cancel := context.WithTimeout(ctx, time.Duration(p.rnd.IntN(20))*time.Millisecond)
			defer cancel()
			jobs, err = one(q.Get(ctx))
		}
		for _, j := range jobs {
			told = append(told, toldOf(j))
		}
		return told, err
	})
	return jobs, err
}

func one(j *queue.Job, err error) ([]*queue.Job, error) {
	if err != nil {
		return nil, err
	}
	return []*queue.Job{j}, nil
}

func toldOf(j *queue.Job) job {
	return job{ID: j.ID, Delivery: j.Delivery, Attempt: j.Attempt, Max: j.MaxAttempts, Token: tokenOf(j.Payload), Key: j.JobID}
}

// finish settles a job, or forgets it, now and then twice, or too late.
func (p *player) finish(j *queue.Job) error {
	switch n := p.rnd.IntN(100); {
	case n < 2:
		return nil
	case n < 6:
		p.late = append(p.late, j)
		return nil
	case n < 8:
		if err := p.extend(j); err != nil {
			return err
		}
	case n < 11:
		if err := p.settle(j); err != nil {
			return err
		}
	}
	return p.settle(j)
}

// forge acks a job with the receipt of another delivery.
func (p *player) forge(j *queue.Job) error {
	e := entry{Op: opAck, Queue: j.Queue, Jobs: []job{{ID: j.ID, Delivery: j.Delivery}}, Forged: true}
	return p.tell(e, func() ([]job, error) { return nil, p.queue(j.Queue).Ack(context.Background(), j.ID, p.old.Receipt) })
}

func (p *player) extend(j *queue.Job) error {
	if _, err := j.Extend(context.Background(), lease); err != nil && !errors.Is(err, queue.ErrLeaseLost) {
		return p.note("extend of job %d: %v", j.ID, err)
	}
	return nil
}

// settle ends a delivery in one of the ways there are. Settling has a context of its own, as in the Worker.
func (p *player) settle(j *queue.Job) error {
	ctx := context.Background()
	e := entry{Op: opAck, Queue: j.Queue, Jobs: []job{{ID: j.ID, Delivery: j.Delivery}}}
	call := func() error { return j.Ack(ctx) }
	switch n := p.rnd.IntN(20); {
	case n < 3:
		e.Op, call = opNack, func() error {
			return j.Nack(ctx, errors.New("not now"), queue.Delay(time.Duration(p.rnd.IntN(40))*time.Millisecond))
		}
	case n < 4:
		e.Op, call = opFail, func() error { return j.Fail(ctx, errors.New("never")) }
	case n < 6:
		e.Op, call = opRelease, func() error { return j.Release(ctx) }
	case n < 9:
		e.Follow, e.On = &job{Token: p.token()}, brief
		call = func() error { return j.AckWith(ctx, p.follow(e)) }
	}
	return p.tell(e, func() ([]job, error) { return nil, call() })
}

// follow puts the follow-up that an ack's entry tells of, in the transaction of the ack.
func (p *player) follow(e entry) func(*queue.Tx) error {
	return func(tx *queue.Tx) error {
		_, err := p.queue(e.On).PutTx(context.Background(), tx, p.payload(e.Follow.Token))
		return err
	}
}
