//go:build unix

package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/localqueue/localqueue/queue"
)

// stampSize is what a payload begins with: the instant of its put, on the clock that all processes share.
const stampSize = 8

// lane is one goroutine of a process.
type lane struct {
	*part
	h       histograms
	payload []byte
}

func newPayload(size int) []byte {
	p := make([]byte, max(size, stampSize))
	for i := range p {
		p[i] = byte(i * 31) // no run of zeros that something below might shorten
	}
	return p
}

// operation times one call. ErrBusy is counted, not an end: the caller tries again, as a user would.
func (l *lane) operation(op string, call func() error) (at int64, err error) {
	before := monotonic()
	err = call()
	at = monotonic()
	if err == nil {
		l.h.record(op, at-before)
		l.turns.complete(at)
	} else if errors.Is(err, queue.ErrBusy) {
		l.h.record(op, at-before) // the caller has waited for it all the same
		if !errors.Is(err, context.DeadlineExceeded) {
			l.busy.Add(1)
		}
	}
	return at, err
}

func (l *lane) put() (at int64, err error) { return l.putUntil(context.Background()) }

func (l *lane) putUntil(ctx context.Context) (at int64, err error) {
	binary.LittleEndian.PutUint64(l.payload, uint64(monotonic()))
	var res []queue.PutResult
	at, err = l.operation(opPut, func() (err error) {
		if l.task.Batch > 0 {
			jobs := make([]queue.NewJob, l.task.Batch)
			for i := range jobs {
				jobs[i].Payload = l.payload
			}
			res, err = l.q.PutMany(ctx, jobs)
			return err
		}
		one, err := l.q.Put(ctx, l.payload)
		res = []queue.PutResult{one}
		return err
	})
	if err != nil {
		return at, err
	}
	for _, r := range res {
		l.journal.write(record{event: evPut, id: r.ID, at: at})
		plantedLoss(l.q, r.ID)
	}
	return at, nil
}

func (l *lane) get(ctx context.Context) (jobs []*queue.Job, err error) {
	at, err := l.operation(opClaim, func() (err error) {
		if l.task.Batch > 0 {
			jobs, err = l.q.GetMany(ctx, l.task.Batch)
			return err
		}
		one, err := l.q.Get(ctx)
		jobs = []*queue.Job{one}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		l.journal.write(record{event: evClaim, id: j.ID, delivery: j.Delivery, at: at, until: j.LeaseUntil.UnixMilli()})
	}
	return jobs, nil
}

// ack settles the jobs until it is known what became of each.
func (l *lane) ack(jobs []*queue.Job) (at int64, err error) {
	for {
		at, err = l.operation(opAck, func() error {
			if l.task.Batch == 0 {
				return jobs[0].Ack(context.Background())
			}
			refs := make([]queue.Ref, len(jobs))
			for i, j := range jobs {
				refs[i] = j.Ref()
			}
			each, err := l.q.AckMany(context.Background(), refs)
			return errors.Join(err, errors.Join(each...))
		})
		if !errors.Is(err, queue.ErrBusy) {
			break
		}
	}
	if errors.Is(err, queue.ErrLeaseLost) && l.task.Batch == 0 {
		l.lost.Add(1)
		return at, nil
	}
	if err != nil {
		return at, err
	}
	for _, j := range jobs {
		r := record{event: evAck, id: j.ID, delivery: j.Delivery, at: at}
		l.journal.write(r)
		if plantedTwice() {
			l.journal.write(r)
		}
		if len(j.Payload) >= stampSize {
			l.h.record(opWhole, at-int64(binary.LittleEndian.Uint64(j.Payload)))
		}
	}
	return at, nil
}

// cycle puts, gets whatever job is next, and acks it. It has put before it gets, so a job is always there for it.
func (l *lane) cycle() error {
	for n := 0; !l.over(n); n++ {
		if _, err := l.put(); errors.Is(err, queue.ErrBusy) {
			n--
			continue
		} else if err != nil {
			return err
		}
		jobs, err := l.getOwn()
		if err != nil || jobs == nil {
			return err
		}
		at, err := l.ack(jobs)
		if err != nil {
			return err
		}
		l.unit(at, len(jobs))
	}
	return nil
}

// getOwn gets a job that must be there. None, without an error, is what the end of the measured time leaves.
func (l *lane) getOwn() ([]*queue.Job, error) {
	for {
		jobs, err := l.get(l.patient)
		gaveUp := l.patient.Err() != nil
		switch {
		case err == nil:
			return jobs, nil
		case !gaveUp && errors.Is(err, queue.ErrBusy):
		case gaveUp && l.end != 0:
			return nil, nil
		case gaveUp:
			return nil, fmt.Errorf("no job came within %v, although this process had put one: %w", patience, err)
		default:
			return nil, err
		}
	}
}

func (l *lane) produce() error {
	for n := 0; !l.over(n); n++ {
		at, err := l.put()
		if errors.Is(err, queue.ErrBusy) {
			n--
			continue
		} else if err != nil {
			return err
		}
		l.unit(at, max(1, l.task.Batch))
	}
	return nil
}

// consume gets and acks until the time is over, or with a count, so many rounds.
func (l *lane) consume() error {
	for n := 0; !l.over(n); n++ {
		jobs, err := l.get(l.receive)
		switch {
		case l.receive.Err() != nil && err != nil:
			return nil
		case errors.Is(err, queue.ErrBusy):
			n--
			continue
		case err != nil:
			return err
		}
		at, err := l.ack(jobs)
		if err != nil {
			return err
		}
		l.unit(at, len(jobs))
	}
	return nil
}
