package queue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/localqueue/localqueue/queue"
)

func init() { roles[historyRole] = playHistory }

var historyQueues = []string{"one", "two"}

const historyGoroutines = 3

// playHistory is a process of the history test: some goroutines that put, claim and settle, and write down each answer.
func playHistory() {
	var o historyOrder
	if err := json.Unmarshal([]byte(os.Getenv(historyEnv)), &o); err != nil {
		log.Fatal(err)
	}
	s, err := queue.Open(o.Dir, queue.WithDurability(queue.Normal), queue.WithName(fmt.Sprint(o.Process)))
	if err != nil {
		log.Fatal(err)
	}
	f, err := os.Create(o.Log)
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(f)
	book := &historyBook{process: o.Process, out: json.NewEncoder(out)}

	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // until the gate opens
		log.Fatal(err)
	}
	end := time.Now().Add(o.Time)
	var all sync.WaitGroup
	for g := range historyGoroutines {
		p := &historyPlayer{s: s, book: book, rnd: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(o.Process*100+g)))}
		for i, name := range historyQueues {
			lease := time.Duration(50+20*o.Process+30*i) * time.Millisecond
			q, err := s.Queue(name, queue.WithLease(lease))
			if err != nil {
				log.Fatal(err)
			}
			p.queues = append(p.queues, q)
		}
		all.Go(func() {
			for time.Now().Before(end) {
				p.step()
			}
		})
	}
	all.Wait()
	if err := errors.Join(book.err, out.Flush(), f.Close(), s.Close()); err != nil {
		log.Fatal(err)
	}
}

// historyBook is where a process writes.
type historyBook struct {
	process int
	mu      sync.Mutex
	out     *json.Encoder
	err     error
	highest atomic.Int64 // of the ids seen
}

func (b *historyBook) write(e historyEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.Process = b.process
	b.highest.Store(max(b.highest.Load(), e.ID))
	b.err = errors.Join(b.err, b.out.Encode(e))
}

// historyPlayer is one goroutine.
type historyPlayer struct {
	s      *queue.Store
	queues []*queue.Queue
	book   *historyBook
	rnd    *rand.Rand
	n      int
	empty  bool         // the last claim found nothing
	late   []*queue.Job // whose leases this player lets run out, to settle them too late
}

func (p *historyPlayer) step() {
	q := p.queues[p.rnd.IntN(len(p.queues))]
	if len(p.late) > 0 && time.Now().After(p.late[0].LeaseUntil.Add(time.Millisecond)) {
		j := p.late[0]
		p.late = p.late[1:]
		p.end(j)
	}
	switch n := p.rnd.IntN(100); {
	case p.empty || n < 28:
		p.empty = false
		p.put(q)
	case n < 33:
		p.cancel(q, 1+p.rnd.Int64N(p.book.highest.Load()+1))
	default:
		p.claim(q)
	}
}

func historyNow() int64 { return time.Now().UnixMicro() }

func (p *historyPlayer) put(q *queue.Queue) {
	ctx := context.Background()
	var jobs []queue.NewJob
	var events []historyEvent
	for range 1 + p.rnd.IntN(4)*p.rnd.IntN(2) {
		p.n++
		e := historyEvent{Op: "put", Queue: q.Name(), Payload: fmt.Sprintf("%d-%p-%d", p.book.process, p, p.n)}
		opts := []queue.PutOption{queue.MaxRetries(p.rnd.IntN(3))}
		switch p.rnd.IntN(8) {
		case 0:
			opts = append(opts, queue.Delay(time.Duration(p.rnd.IntN(30))*time.Millisecond))
		case 1: // processes meet at these keys
			e.Key = fmt.Sprint(time.Now().UnixMilli() / 50)
			opts = append(opts, queue.JobID(e.Key))
		case 2:
			opts = append(opts, queue.Priority(int16(p.rnd.IntN(3))))
		}
		jobs, events = append(jobs, queue.NewJob{Payload: []byte(e.Payload), Options: opts}), append(events, e)
	}
	begin := historyNow()
	var results []queue.PutResult
	var err error
	if len(jobs) == 1 {
		var r queue.PutResult
		r, err = q.Put(ctx, jobs[0].Payload, jobs[0].Options...)
		results = []queue.PutResult{r}
	} else {
		results, err = q.PutMany(ctx, jobs)
	}
	end := historyNow()
	for i, e := range events {
		e.Begin, e.End, e.Error = begin, end, modelKind(err)
		if err == nil {
			e.ID, e.Dup = results[i].ID, results[i].Duplicate
		}
		p.book.write(e)
	}
}

func (p *historyPlayer) claim(q *queue.Queue) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	var jobs []*queue.Job
	var err error
	begin := historyNow()
	switch p.rnd.IntN(4) {
	case 0:
		jobs, err = q.TryGetMany(context.Background(), 3)
	case 1:
		jobs, err = q.GetMany(ctx, 2)
	default:
		var j *queue.Job
		if j, err = q.TryGet(context.Background()); err == nil {
			jobs = []*queue.Job{j}
		}
	}
	end := historyNow()
	if err != nil {
		p.empty = errors.Is(err, queue.ErrEmpty) || errors.Is(err, context.DeadlineExceeded)
		if !p.empty {
			p.book.write(historyEvent{Op: "claim", Queue: q.Name(), Begin: begin, End: end, Error: modelKind(err)})
		}
		return
	}
	for _, j := range jobs {
		p.book.write(historyEvent{Op: "claim", Queue: q.Name(), ID: j.ID, Delivery: j.Delivery, Receipt: j.Receipt, Attempt: j.Attempt,
			Lease: q.Lease().Milliseconds(), Until: j.LeaseUntil.UnixMilli(), Begin: begin, End: end})
	}
	for _, j := range jobs {
		switch n := p.rnd.IntN(20); {
		case n < 3 && len(p.late) < 5:
			p.late = append(p.late, j)
		case n == 3:
			p.extend(j)
			p.end(j)
		case n == 4:
			p.cancel(q, j.ID)
			p.end(j)
		default:
			p.end(j)
		}
	}
	if len(jobs) > 1 && p.rnd.IntN(4) == 0 { // settle again: one end is enough
		p.end(jobs[0])
	}
}

// end settles a delivery in one of the ways.
func (p *historyPlayer) end(j *queue.Job) {
	ctx := context.Background()
	ways := []struct {
		op   string
		call func() error
	}{
		{"ack", func() error { return j.Ack(ctx) }},
		{"ack", func() error { return j.Ack(ctx) }},
		{"ack", func() error { return j.AckWith(ctx, func(*queue.Tx) error { return nil }) }},
		{"nack", func() error { return j.Nack(ctx, errors.New("no")) }},
		{"nack", func() error {
			return j.Nack(ctx, errors.New("not yet"), queue.Delay(time.Duration(p.rnd.IntN(9))*time.Millisecond))
		}},
		{"fail", func() error { return j.Fail(ctx, errors.New("never")) }},
		{"release", func() error { return j.Release(ctx) }},
	}
	way := ways[p.rnd.IntN(len(ways))]
	p.told(way.op, j, func(*historyEvent) error { return way.call() })
}

func (p *historyPlayer) extend(j *queue.Job) {
	p.told("extend", j, func(e *historyEvent) error {
		until, err := j.Extend(context.Background(), 200*time.Millisecond)
		e.Until = until.UnixMilli()
		return err
	})
}

func (p *historyPlayer) told(op string, j *queue.Job, call func(*historyEvent) error) {
	e := historyEvent{Op: op, Queue: j.Queue, ID: j.ID, Delivery: j.Delivery, Begin: historyNow()}
	err := call(&e)
	e.End, e.Error = historyNow(), modelKind(err)
	p.book.write(e)
}

func (p *historyPlayer) cancel(q *queue.Queue, id int64) {
	e := historyEvent{Op: "cancel", Queue: q.Name(), ID: id, Begin: historyNow()}
	err := q.Cancel(context.Background(), id)
	e.End, e.Error = historyNow(), modelKind(err)
	p.book.write(e)
}
