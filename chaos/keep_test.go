//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const (
	rolePurge  = "purge" // purge and retention
	roleVacuum = "vacuum"
	roleOpen   = "open" // open, put, close
	roleLook   = "look" // what reads: stats, lists, check
)

func init() {
	roles[rolePurge] = func(ctx context.Context, p *player) error { return p.together(ctx, 1, purge) }
	roles[roleVacuum] = func(ctx context.Context, p *player) error { return p.together(ctx, 1, vacuum) }
	roles[roleOpen] = func(ctx context.Context, p *player) error { return p.together(ctx, 1, openAndClose) }
	roles[roleLook] = func(ctx context.Context, p *player) error { return p.together(ctx, 2, look) }
}

func purge(ctx context.Context, p *player) error {
	name := p.Purged[p.rnd.IntN(len(p.Purged))]
	q, age := p.queue(name), time.Duration(p.rnd.IntN(30))*time.Millisecond
	p.pause(ctx, 15*time.Millisecond)
	switch way := p.rnd.IntN(8); {
	case way == 0 && name == brief:
		return q.KeepAcked(context.Background(), age/20*20) // 0, often: the row goes with its ack
	case way == 0:
		return q.KeepAcked(context.Background(), 20*age)
	case way == 1:
		return q.KeepAckedForever(context.Background())
	case way == 2:
		_, err := q.ApplyRetention(context.Background())
		return err
	}
	_, err := q.Purge(context.Background(), queue.PurgeOptions{OlderThan: age})
	return err
}

// vacuum may find the file busy: it gives way to writers.
func vacuum(ctx context.Context, p *player) error {
	p.pause(ctx, 60*p.Pace)
	if err := p.store.Vacuum(context.Background()); !errors.Is(err, queue.ErrBusy) {
		return err
	}
	return nil
}

func openAndClose(ctx context.Context, p *player) error {
	visit := *p
	var err error
	if visit.store, err = p.open(p.Dir); err != nil {
		return err
	}
	return errors.Join(produce(ctx, &visit), visit.store.Close())
}

// look reads in every way, and writes down what must never be seen: a snapshot shows whole transactions only.
func look(ctx context.Context, p *player) error {
	q := p.queue([]string{bare, brief, typed}[p.rnd.IntN(3)])
	switch p.rnd.IntN(6) {
	case 0:
		found, err := p.store.Check(ctx, true)
		if err == nil && len(found) > 0 {
			err = p.note("check finds %v", found)
		}
		return unlessOver(ctx, err)
	case 1:
		all, err := p.store.Queues(ctx)
		for _, st := range all {
			err = errors.Join(err, p.soundStats(st))
		}
		return unlessOver(ctx, err)
	case 2:
		if _, err := q.Peek(ctx); !errors.Is(err, queue.ErrEmpty) {
			return unlessOver(ctx, err)
		}
		return nil
	}
	for _, state := range states {
		if err := p.lookAt(ctx, q, state); err != nil {
			return unlessOver(ctx, err)
		}
	}
	st, err := q.Stats(ctx)
	if err == nil {
		err = p.soundStats(st)
	}
	return unlessOver(ctx, err)
}

func (p *player) soundStats(st queue.Stats) error {
	if min(st.Ready-st.Delayed, st.Delayed, st.Processing-st.Expired, st.Expired, st.Acked, st.Failed) < 0 {
		return p.note("stats %+v", st)
	}
	return nil
}

func (p *player) lookAt(ctx context.Context, q *queue.Queue, state queue.State) error {
	page, err := q.List(ctx, state, queue.ListOptions{Limit: 20})
	if err != nil {
		return err
	}
	for _, r := range page.Records {
		if r.State != state || r.Queue != q.Name() || tokenOf(r.Payload) == "" || r.Attempts > r.MaxAttempts {
			return p.note("the list of %s jobs has %+v", state, fmt.Sprint(r.ID, r.State, r.Queue, r.Attempts, r.MaxAttempts))
		}
	}
	if len(page.Records) == 0 {
		return nil
	}
	at := page.Records[p.rnd.IntN(len(page.Records))]
	if _, _, err := q.Show(ctx, at.ID); !errors.Is(err, queue.ErrNotFound) {
		return err
	}
	return nil
}

// unlessOver drops the error of a read that was interrupted because the process is to end.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
