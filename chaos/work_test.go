//go:build linux

package chaos

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/localqueue/localqueue/generics"
)

const roleWork = "work" // a Worker of the typed queue

func init() { roles[roleWork] = work }

// work runs a Worker whose handlers end in every way. The handler writes down what it is going to return; the Worker tells by
// OnDone what has become of that.
func work(ctx context.Context, p *player) error {
	q, err := generics.On[task](p.store, typed)
	if err != nil {
		return err
	}
	w := &worker{player: p, open: map[delivery]entry{}}
	run := generics.NewWorker(q, w.handle, generics.Concurrency(3), generics.OnDone(w.done), generics.Logger(slog.New(slog.DiscardHandler)),
		generics.Grace(50*time.Millisecond), generics.Backoff(func(int) time.Duration { return time.Duration(p.Seed%20) * time.Millisecond }))
	return errors.Join(run.Run(ctx), w.err)
}

// worker has what handlers that run at once share.
type worker struct {
	*player
	mu   sync.Mutex
	open map[delivery]entry // how handlers have ended that wait for OnDone
	err  error
}

// delivery names one: a job may be back in the same Worker before OnDone has told of the delivery before.
type delivery struct{ id, number int64 }

var errHandler = errors.New("the handler's own")

func (w *worker) handle(ctx context.Context, j *generics.Job[task]) error {
	w.fails(w.tell(entry{Op: opClaim, Queue: typed}, func() ([]job, error) { return []job{toldOf(j.Job)}, nil }))
	p := *w.player
	p.rnd = rand.New(rand.NewPCG(w.Seed, uint64(j.ID<<8+j.Delivery)))
	way, pause := p.rnd.IntN(40), time.Duration(p.rnd.IntN(4))*time.Millisecond
	if way == 0 {
		pause = 3 * lease / 2 // heartbeats carry it over its lease
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	e := entry{Op: opAck, Queue: typed, Jobs: []job{{ID: j.ID, Delivery: j.Delivery}}}
	switch {
	case way < 6:
		e.Follow, e.On = &job{Token: w.token()}, brief
		var err error
		w.fails(w.tell(e, func() ([]job, error) {
			err = j.AckWith(context.Background(), p.follow(e))
			return nil, err
		}))
		return err
	case way < 10:
		e.Op = opNack
		w.returning(e)
		return errHandler
	case way < 12:
		e.Op = opFail
		w.returning(e)
		return generics.Permanent(errHandler)
	case way < 14:
		e.Op = opRelease
		w.returning(e)
		return generics.Snooze(time.Millisecond)
	case way < 16:
		e.Op = opPanic
		w.returning(e)
		panic("the handler's own")
	}
	w.returning(e)
	return nil
}

// returning writes down how the handler is about to end.
func (w *worker) returning(e entry) {
	n, err := w.journal.intend(e)
	w.fails(err)
	e.N = n
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[delivery{e.Jobs[0].ID, e.Jobs[0].Delivery}] = e
}

// done writes the answer. A Worker that stops gives a job back, whatever its cancelled handler says.
func (w *worker) done(e generics.Event) {
	w.mu.Lock()
	of := delivery{e.Job.ID, e.Job.Delivery}
	meant, ok := w.open[of]
	delete(w.open, of)
	w.mu.Unlock()
	if !ok {
		return
	}
	switch e.Outcome {
	case generics.Released:
		if meant.Op == opRelease {
			w.fails(w.journal.answer(meant.N, "", nil))
			return
		}
		w.fails(w.journal.answer(meant.N, errEnded, e.Err))
		meant.Op = opRelease
		w.fails(w.tell(meant, func() ([]job, error) { return nil, nil }))
	case generics.Acked, generics.Nacked, generics.Failed, generics.Panicked:
		w.fails(w.journal.answer(meant.N, "", nil))
	case generics.Lost:
		w.fails(w.journal.answer(meant.N, kindOf(e.Err), e.Err))
	}
}

func (w *worker) fails(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}
