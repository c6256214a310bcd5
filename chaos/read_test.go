//go:build linux

package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// readWorld reads what the file says, after the round, and adds it to the calls on that directory.
func readWorld(ctx context.Context, s *queue.Store, calls []*call) (*world, error) {
	w := &world{calls: calls, rows: map[int64]row{}, now: s.Now(), lease: lease,
		purged: map[string]bool{}, workers: map[string]bool{typed: true}}
	found, err := s.Check(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		w.findings = append(w.findings, fmt.Sprintf("check finds %+v", f))
	}
	if w.stats, err = s.Queues(ctx); err != nil {
		return nil, err
	}
	for _, st := range w.stats {
		q, err := s.Queue(st.Queue)
		if err != nil {
			return nil, err
		}
		for _, state := range states {
			for r, err := range q.All(ctx, state) {
				if err != nil {
					return nil, err
				}
				if err := w.addRow(ctx, q, r); err != nil {
					return nil, err
				}
			}
		}
	}
	return w, nil
}

func (w *world) addRow(ctx context.Context, q *queue.Queue, r queue.Record) (err error) {
	if _, again := w.rows[r.ID]; again {
		w.findings = append(w.findings, fmt.Sprintf("the lists have job %d twice", r.ID))
	}
	one := row{Record: r}
	if r.Delivery > 0 {
		if _, one.story, err = q.Show(ctx, r.ID); err != nil {
			return err
		}
	}
	w.rows[r.ID] = one
	return nil
}

// readJournals reads what all processes wrote down, by the directory it is about ("" is the main one).
func readJournals(dir string) (map[string][]*call, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	byDir := map[string][]*call{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		calls, err := readJournal(f.Name(), text)
		if err != nil {
			return nil, err
		}
		for _, c := range calls {
			byDir[c.Dir] = append(byDir[c.Dir], c)
		}
	}
	return byDir, nil
}

// drain brings every job to an end, with a clock that has passed all leases and delays, and returns the calls it made.
func drain(ctx context.Context, dir string) (calls []*call, err error) {
	later := func() time.Time { return time.Now().Add(time.Hour) }
	s, err := queue.Open(dir, queue.WithDurability(queue.Normal), queue.WithLease(lease), queue.WithClock(later))
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := s.Close(); err == nil {
			err = closing
		}
	}()
	all, err := s.Queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, st := range all {
		q, err := s.Queue(st.Queue)
		if err != nil {
			return nil, err
		}
		more, err := drainQueue(ctx, q)
		calls = append(calls, more...)
		if err != nil {
			return calls, err
		}
	}
	return calls, nil
}

func drainQueue(ctx context.Context, q *queue.Queue) (calls []*call, err error) {
	told := func(op string, err error, jobs ...job) {
		e := entry{N: int64(len(calls)), Op: op, Queue: q.Name(), Jobs: jobs, Err: kindOf(err)}
		calls = append(calls, &call{Proc: "drain", Answered: true, entry: e})
	}
	if _, err := q.ReclaimExpired(ctx); err != nil {
		return nil, err
	}
	for range 1000 { // a queue that doesn't get empty is left as it is, for the verifier
		jobs, err := q.TryGetMany(ctx, 500)
		if kindOf(err) == errEmpty {
			return calls, nil
		}
		if err != nil {
			return calls, err
		}
		refs := make([]queue.Ref, len(jobs))
		for i, j := range jobs {
			refs[i] = j.Ref()
			told(opClaim, nil, toldOf(j))
		}
		errs, err := q.AckMany(ctx, refs)
		if err != nil {
			return calls, err
		}
		for i, j := range jobs {
			told(opAck, errs[i], job{ID: j.ID, Delivery: j.Delivery})
		}
	}
	return calls, nil
}
