//go:build unix

package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// fill puts n jobs into a state, before anything is measured, and tells their first and last id.
func fill(ctx context.Context, q *queue.Queue, n int, state queue.State, payload int) (ids [2]int64, err error) {
	for left := n; left > 0; {
		jobs := make([]queue.NewJob, min(left, 1000))
		p := newPayload(payload)
		binary.LittleEndian.PutUint64(p, uint64(monotonic()))
		for i := range jobs {
			jobs[i].Payload = p
			if state == queue.Delayed {
				jobs[i].Options = []queue.PutOption{queue.Delay(24 * time.Hour)}
			}
		}
		res, err := q.PutMany(ctx, jobs)
		if err != nil {
			return ids, err
		}
		if ids[0] == 0 {
			ids[0] = res[0].ID
		}
		ids[1] = res[len(res)-1].ID
		left -= len(jobs)
		if state == queue.Acked || state == queue.Failed {
			if err := finishAll(ctx, q, len(jobs), state); err != nil {
				return ids, err
			}
		}
	}
	return ids, nil
}

func finishAll(ctx context.Context, q *queue.Queue, n int, state queue.State) error {
	jobs, err := q.TryGetMany(ctx, n)
	if err != nil {
		return err
	}
	refs := make([]queue.Ref, len(jobs))
	for i, j := range jobs {
		refs[i] = j.Ref()
	}
	var each []error
	if state == queue.Acked {
		each, err = q.AckMany(ctx, refs)
	} else {
		each, err = q.FailMany(ctx, refs, errors.New("dead on purpose"))
	}
	return errors.Join(err, errors.Join(each...))
}
