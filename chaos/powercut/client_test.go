package powercut

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

// What the client is told by its environment.
const (
	dirEnv  = "LOCALQUEUE_POWERCUT_DIR"
	modeEnv = "LOCALQUEUE_POWERCUT_MODE"
	nameEnv = "LOCALQUEUE_POWERCUT_NAME" // of this process, among those that run at once
)

const (
	leaseTime = time.Hour // no lease ends while images are looked at
	sessions  = 2         // times that each client opens and closes the queue
	putsEach  = 60        // of a producer in a session
	rounds    = 12        // of a keeper in a session
)

// journalist writes the client's notes.
type journalist struct {
	name  string
	marks *preload.Marks
	count atomic.Int64
}

// tell runs an operation between two notes. do returns what the operation did; with an error, nothing.
func (j *journalist) tell(verb Verb, do func() ([]Move, error)) error {
	n := Note{Op: fmt.Sprintf("%s-%d", j.name, j.count.Add(1)), Verb: verb}
	if err := j.note(n); err != nil {
		return err
	}
	moves, err := do()
	if n.Done = true; err == nil {
		n.Moves = moves
	}
	return errors.Join(err, j.note(n))
}

func (j *journalist) note(n Note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return j.marks.Mark(text)
}

// payload is a job's name and something to fill pages with, of 0 to 5 kB.
func payload(name string) []byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	fill := make([]byte, r.IntN(500)*(1+9*r.IntN(2)))
	for i := range fill {
		fill[i] = byte(r.Uint32())
	}
	return append([]byte(name+"\n"), fill...)
}

// nameOf is the name in a payload, and whether all of it is as it was put.
func nameOf(p []byte) (string, bool) {
	name, _, _ := bytes.Cut(p, []byte("\n"))
	return string(name), bytes.Equal(p, payload(string(name)))
}

func put(job string) Move { return Move{Job: job, To: Status{State: queue.Ready}, Phase: 1} }

func claimed(jobs []*queue.Job) (moves []Move) {
	for _, j := range jobs {
		name, _ := nameOf(j.Payload)
		moves = append(moves, Move{Job: name, To: Status{queue.Leased, j.Delivery}, At: j.Delivery})
	}
	return moves
}

// after is a move of a job that was delivered: the phase counts those of one delivery, from the settling (1) on.
func after(j *queue.Job, phase int, to queue.State) Move {
	name, _ := nameOf(j.Payload)
	m := Move{Job: name, To: Status{to, j.Delivery}, At: j.Delivery, Phase: phase}
	if to == "" {
		m.To = Status{}
	}
	return m
}

// client is the workload: producers and consumers on one queue, and a keeper on its own.
func client() error {
	marks, err := preload.OpenMarks()
	if err != nil {
		return err
	}
	j := &journalist{name: os.Getenv(nameEnv), marks: marks}
	for session := range sessions {
		s, err := queue.Open(os.Getenv(dirEnv), queue.WithDurability(queue.Durability(os.Getenv(modeEnv))), queue.WithLease(leaseTime))
		if err != nil {
			return err
		}
		if err := errors.Join(work(j, s, fmt.Sprintf("%s.%d", j.name, session)), s.Close()); err != nil {
			return err
		}
	}
	return marks.Close()
}

func work(j *journalist, s *queue.Store, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shared, err := s.Queue("shared")
	if err != nil {
		return err
	}
	own, err := s.Queue(name + " keeper")
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, 5)
	start := func(i int, part func() error) { all.Go(func() { errs[i] = part() }) }
	for i := range 2 {
		start(i, func() error { return produce(ctx, j, shared, fmt.Sprintf("%s.p%d", name, i)) })
		start(2+i, func() error { return consume(ctx, j, shared, s) })
	}
	start(4, func() error { return keep(ctx, j, own) })
	all.Wait()
	return errors.Join(errs...)
}

// produce puts jobs one by one and, every fifth time, some at once.
func produce(ctx context.Context, j *journalist, q *queue.Queue, name string) error {
	for i := range putsEach {
		n := 1
		if i%5 == 4 {
			n = 2 + rand.IntN(8)
		}
		var moves []Move
		var jobs []queue.NewJob
		for k := range n {
			job := fmt.Sprintf("%s.%d.%d", name, i, k)
			moves, jobs = append(moves, put(job)), append(jobs, queue.NewJob{Payload: payload(job)})
		}
		err := j.tell(Put, func() (_ []Move, err error) {
			if n == 1 {
				_, err = q.Put(ctx, jobs[0].Payload)
			} else {
				_, err = q.PutMany(ctx, jobs)
			}
			return moves, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// consume claims one job or some, and ends their deliveries in every way, or not at all.
func consume(ctx context.Context, j *journalist, q *queue.Queue, s *queue.Store) error {
	next, err := s.Queue("follow-ups")
	if err != nil {
		return err
	}
	for i := range putsEach {
		var jobs []*queue.Job
		err := j.tell(Claim, func() (_ []Move, err error) {
			jobs, err = q.TryGetMany(ctx, 1+i%4*(i%3))
			return claimed(jobs), err
		})
		if err != nil && !errors.Is(err, queue.ErrEmpty) {
			return err
		}
		if len(jobs) > 3 {
			if err := ackAll(ctx, j, q, jobs); err != nil {
				return err
			}
			continue
		}
		for _, job := range jobs {
			if err := settle(ctx, j, job, next); err != nil {
				return err
			}
		}
	}
	return nil
}

func ackAll(ctx context.Context, j *journalist, q *queue.Queue, jobs []*queue.Job) error {
	return j.tell(Ack, func() (moves []Move, err error) {
		var refs []queue.Ref
		for _, job := range jobs {
			refs, moves = append(refs, job.Ref()), append(moves, after(job, 1, queue.Acked))
		}
		each, err := q.AckMany(ctx, refs)
		return moves, errors.Join(append(each, err)...)
	})
}

func settle(ctx context.Context, j *journalist, job *queue.Job, next *queue.Queue) error {
	one := func(verb Verb, to queue.State, end func() error) error {
		return j.tell(verb, func() ([]Move, error) { return []Move{after(job, 1, to)}, end() })
	}
	retried := queue.Ready
	if job.Attempt == job.MaxAttempts {
		retried = queue.Failed
	}
	switch n := rand.IntN(20); {
	case n < 8:
		return one(Ack, queue.Acked, func() error { return job.Ack(ctx) })
	case n < 11:
		return one(Nack, retried, func() error { return job.Nack(ctx, errors.New("not now")) })
	case n < 13:
		return one(Fail, queue.Failed, func() error { return job.Fail(ctx, errors.New("never")) })
	case n < 15:
		return one(Release, queue.Ready, func() error { return job.Release(ctx) })
	case n < 19:
		name, _ := nameOf(job.Payload)
		name = fmt.Sprintf("%s, then", name)
		return j.tell(AckWith, func() ([]Move, error) {
			return []Move{after(job, 1, queue.Acked), put(name)}, job.AckWith(ctx, func(tx *queue.Tx) error {
				_, err := next.PutTx(ctx, tx, payload(name))
				return err
			})
		})
	}
	return nil // it stays leased
}

// keep does to its own queue what operators do.
func keep(ctx context.Context, j *journalist, q *queue.Queue) error {
	for i := range rounds {
		if err := keepOnce(ctx, j, q, fmt.Sprintf("%s.%d", q.Name(), i)); err != nil {
			return err
		}
		if err := set(ctx, j, q, i); err != nil {
			return err
		}
		if i == rounds/2 {
			if err := q.Store().Vacuum(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// set changes the queue's settings, each round to others than before.
func set(ctx context.Context, j *journalist, q *queue.Queue, round int) error {
	kept := 24*time.Hour + time.Duration(round)*time.Second
	for i, act := range []struct {
		to Status
		do func() error
	}{
		{settings(false, &kept), func() error { return q.KeepAcked(ctx, kept) }},
		{settings(true, &kept), func() error { return q.Pause(ctx) }},
		{settings(false, &kept), func() error { return q.Resume(ctx) }},
	} {
		move := Move{Job: settingsOf(q.Name()), To: act.to, At: int64(round), Phase: i}
		if err := j.tell(Set, func() ([]Move, error) { return []Move{move}, act.do() }); err != nil {
			return err
		}
	}
	return nil
}

func settingsOf(queue string) string { return "settings of " + queue }

// settings is zero for those of a queue that nobody has set up.
func settings(paused bool, kept *time.Duration) (s Status) {
	if paused {
		s.State = "paused"
	}
	if kept != nil {
		s.Delivery = int64(*kept)
	}
	return s
}

func keepOnce(ctx context.Context, j *journalist, q *queue.Queue, name string) error {
	var moves []Move
	var batch []queue.NewJob
	for _, part := range []string{"acked", "failed", "deleted", "cancelled"} {
		job := name + "." + part
		moves, batch = append(moves, put(job)), append(batch, queue.NewJob{Payload: payload(job)})
	}
	err := j.tell(Put, func() ([]Move, error) { _, err := q.PutMany(ctx, batch); return moves, err })
	if err != nil {
		return err
	}
	var jobs []*queue.Job
	err = j.tell(Claim, func() (_ []Move, err error) {
		jobs, err = q.TryGetMany(ctx, len(batch))
		return claimed(jobs), err
	})
	if err != nil {
		return err
	}
	if len(jobs) != len(batch) {
		return fmt.Errorf("%s: %d jobs were put, %d claimed", name, len(batch), len(jobs))
	}
	a, f, d, c := jobs[0], jobs[1], jobs[2], jobs[3]
	for _, act := range []struct {
		verb  Verb
		moves []Move
		do    func() error
	}{
		{Ack, []Move{after(a, 1, queue.Acked)}, func() error { return a.Ack(ctx) }},
		{Fail, []Move{after(f, 1, queue.Failed)}, func() error { return f.Fail(ctx, errors.New("for now")) }},
		{Retry, []Move{after(f, 2, queue.Ready)}, func() error { return q.RetryFailed(ctx, f.ID) }},
		{Nack, []Move{after(d, 1, queue.Ready)}, func() error { return d.Nack(ctx, errors.New("not wanted")) }},
		{Delete, []Move{after(d, 2, "")}, func() error { return q.Delete(ctx, d.ID) }},
		{Cancel, []Move{after(c, 1, queue.Failed)}, func() error { return q.Cancel(ctx, c.ID) }},
		{Cancel, []Move{after(f, 3, queue.Failed)}, func() error { return q.Cancel(ctx, f.ID) }},
		{Purge, []Move{after(a, 2, ""), after(c, 2, ""), after(f, 4, "")}, func() error {
			n, err := q.Purge(ctx, queue.PurgeOptions{Failed: true})
			if err == nil && n != 3 {
				err = fmt.Errorf("%d jobs were purged, not 3", n)
			}
			return err
		}},
	} {
		if err := j.tell(act.verb, func() ([]Move, error) { return act.moves, act.do() }); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// opener only opens and closes the queue.
func opener() error {
	s, err := queue.Open(os.Getenv(dirEnv))
	if err != nil {
		return err
	}
	return s.Close()
}
