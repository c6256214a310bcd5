package queue_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// The model is the contract in plain Go: what each operation does to jobs held in memory. It knows no SQL, no indexes and
// no counters; it counts and sorts. TestModel runs the same operations on it and on the engine, and compares.

// modelJob is a job as List shows it, with its failed deliveries and how the last delivery ended.
type modelJob struct {
	queue.Record
	story   []queue.Delivery
	end     queue.LossCause // what a late settle of the last delivery is told
	touched bool            // the story has changed since the last comparison
}

// modelQueue is a queue's settings.
type modelQueue struct {
	name    string
	lease   time.Duration
	retries int // the default of its jobs
	limit   int // WithMaxPending; 0: none
	paused  bool
	keep    *time.Duration
}

type model struct {
	jobs     map[int64]*modelJob
	last     int64 // the highest id given
	queues   []*modelQueue
	receipts map[string]bool // every receipt granted
}

func newModel(queues ...*modelQueue) *model {
	return &model{jobs: map[int64]*modelJob{}, queues: queues, receipts: map[string]bool{}}
}

// clone is for transactions that may be rolled back.
func (m *model) clone() *model {
	c := &model{jobs: make(map[int64]*modelJob, len(m.jobs)), last: m.last, receipts: maps.Clone(m.receipts)}
	for id, j := range m.jobs {
		copied := *j
		copied.story = slices.Clone(j.story)
		c.jobs[id] = &copied
	}
	for _, q := range m.queues {
		copied := *q
		c.queues = append(c.queues, &copied)
	}
	return c
}

func (m *model) queue(name string) *modelQueue {
	for _, q := range m.queues {
		if q.name == name {
			return q
		}
	}
	return nil
}

// list is what List shows of one state, in its order.
func (m *model) list(name string, state queue.State) []*modelJob {
	var found []*modelJob
	for _, j := range m.jobs {
		if j.Queue == name && j.State == state {
			found = append(found, j)
		}
	}
	slices.SortFunc(found, func(a, b *modelJob) int {
		order := 0
		switch state {
		case queue.Ready:
			order = cmp.Compare(b.Priority, a.Priority)
		case queue.Delayed:
			order = a.AvailableAt.Compare(b.AvailableAt)
		case queue.Leased:
			order = a.LeaseUntil.Compare(b.LeaseUntil)
		case queue.Acked:
			order = a.UpdatedAt.Compare(b.UpdatedAt)
		}
		return cmp.Or(order, cmp.Compare(a.ID, b.ID))
	})
	return found
}

func (m *model) records(name string, state queue.State) []queue.Record {
	var recs []queue.Record
	for _, j := range m.list(name, state) {
		recs = append(recs, j.Record)
	}
	return recs
}

// byID are the jobs of a queue in a state that the test accepts, by id.
func (m *model) byID(name string, states ...queue.State) []*modelJob {
	var found []*modelJob
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		if j := m.jobs[id]; j.Queue == name && slices.Contains(states, j.State) {
			found = append(found, j)
		}
	}
	return found
}

// holder is the job that holds a key, or nil: for as long as its row exists, or until it finishes.
func (m *model) holder(name, key string) *modelJob {
	for _, j := range m.jobs {
		if j.Queue == name && j.JobID == key && (!j.Pending || j.State != queue.Acked && j.State != queue.Failed) {
			return j
		}
	}
	return nil
}

// pending is what WithMaxPending limits.
func (m *model) pending(name string) int {
	return len(m.byID(name, queue.Ready, queue.Delayed, queue.Leased))
}

// modelOp is one operation: on a queue, at the time of the Store that runs it, by that Store's name.
type modelOp struct {
	m   *model
	q   *modelQueue
	now time.Time // whole milliseconds
	who string
}

func (o modelOp) stats() queue.Stats {
	st := queue.Stats{Queue: o.q.name, Paused: o.q.paused, KeepAcked: o.q.keep}
	oldest := map[int16]*modelJob{} // the lowest id of each priority; ids stand for age
	var due []*modelJob
	for _, j := range o.m.jobs {
		if j.Queue != o.q.name {
			continue
		}
		switch j.State {
		case queue.Ready:
			st.Ready++
			if o := oldest[j.Priority]; o == nil || j.ID < o.ID {
				oldest[j.Priority] = j
			}
		case queue.Delayed:
			st.Ready++
			if j.AvailableAt.After(o.now) {
				st.Delayed++
			} else {
				due = append(due, j)
			}
		case queue.Leased:
			st.Processing++
			if !j.LeaseUntil.After(o.now) {
				st.Expired++
			}
		case queue.Acked:
			st.Acked++
		case queue.Failed:
			st.Failed++
		}
	}
	for _, j := range slices.AppendSeq(due, maps.Values(oldest)) {
		st.OldestAge = max(st.OldestAge, o.now.Sub(j.CreatedAt))
	}
	return st
}

// peek is the job that a claim would take if the queue weren't paused, as it stands now.
func (o modelOp) peek() (*queue.Record, string) {
	trial := o
	trial.m = o.m.clone()
	trial.reclaim()
	trial.promote()
	if next := trial.m.list(o.q.name, queue.Ready); len(next) > 0 {
		rec := o.m.jobs[next[0].ID].Record
		return &rec, ""
	}
	return nil, "ErrEmpty"
}
