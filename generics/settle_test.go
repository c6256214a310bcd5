package generics

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

func TestAnAckThatMayHaveBeenStoredIsNoLossWhenTheNextTrySaysSettled(t *testing.T) {
	for cause, want := range map[queue.LossCause]Outcome{
		queue.LossSettled: Acked, queue.LossGone: Acked, queue.LossSuperseded: Lost, queue.LossExpired: Lost,
	} {
		q := open[int](t)
		r := testRun(t, q)
		put(t, q, 1)
		h, _ := take(t, q, r)
		tries := 0
		got, err := settled(r, h, verdict{act: ack, outcome: Acked}, func(context.Context, []*hold) ([]error, error) {
			if tries++; tries == 1 {
				return nil, fmt.Errorf("commit: %w", queue.ErrOutcomeUnknown)
			}
			return []error{&queue.LeaseLostError{Cause: cause}}, nil
		})
		if got != want || tries != 2 {
			t.Errorf("%s: %s after %d tries", cause, got, tries)
		}
		if got == Lost && !errors.Is(err, queue.ErrOutcomeUnknown) {
			t.Errorf("%s: the first try may have been stored, and the hook hears %v", cause, err)
		}
	}
}

func TestAnAckThatMayHaveBeenStoredIsToldAsSuchWhenTheNextTryComesTooLate(t *testing.T) {
	q := open[int](t)
	r := testRun(t, q)
	put(t, q, 1)
	h, _ := take(t, q, r)
	tries := 0
	got, err := settled(r, h, verdict{act: ack, outcome: Acked}, func(context.Context, []*hold) ([]error, error) {
		if tries++; tries == 1 {
			return nil, fmt.Errorf("commit: %w", queue.ErrOutcomeUnknown)
		}
		h.extended(time.Now()) // the lease ends
		return nil, context.DeadlineExceeded
	})
	if got != Lost || tries != 2 || !errors.Is(err, queue.ErrLeaseLost) || !errors.Is(err, queue.ErrOutcomeUnknown) {
		t.Errorf("%s after %d tries: %v", got, tries, err)
	}
}

func TestAnAckOfTheHandlersThatMayHaveBeenStoredIsFoundOut(t *testing.T) {
	for name, c := range map[string]struct {
		own  error // of the handler's ack
		next error // of the Worker's
		want Outcome
	}{
		"it was":     {queue.ErrOutcomeUnknown, &queue.LeaseLostError{Cause: queue.LossSettled}, Acked},
		"it wasn't":  {queue.ErrOutcomeUnknown, nil, Nacked},
		"it failed":  {queue.ErrBusy, &queue.LeaseLostError{Cause: queue.LossGone}, Lost},
		"it expired": {queue.ErrOutcomeUnknown, &queue.LeaseLostError{Cause: queue.LossExpired}, Lost},
	} {
		q := open[int](t)
		r := testRun(t, q)
		put(t, q, 1)
		h, _ := take(t, q, r)
		if err := h.settling(Acked, func() error { return c.own }); !errors.Is(err, c.own) {
			t.Errorf("%s: %v", name, err)
		}
		got, _ := settled(r, h, verdict{act: nack, outcome: Nacked}, func(context.Context, []*hold) ([]error, error) {
			return []error{c.next}, nil
		})
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestEveryOutcomeIsCounted(t *testing.T) {
	var c counter
	all := []Outcome{Acked, Nacked, Failed, Released, Lost, Panicked, Settled, Abandoned}
	for _, o := range all {
		c.add(o)
	}
	if got, want := c.read(), (Counts{1, 1, 1, 1, 1, 1, 1, 1}); got != want || got.Total() != int64(len(all)) {
		t.Errorf("%+v", got)
	}
}

func TestWhatTheHandlerSettledStandsWhoeverHoldsTheJobNow(t *testing.T) {
	ctx, q := background(t), open[int](t)
	r := testRun(t, q)
	put(t, q, 1)
	h, _ := take(t, q, r)
	job := &Job[int]{Job: h.job, held: h}
	if err := job.Nack(ctx, errors.New("no")); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Get(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := settled(r, h, verdict{act: ack, outcome: Acked}, r.ackMany); got != Nacked || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestAVoidResultIsNotStored(t *testing.T) {
	q := open[int](t)
	r := testRun(t, q)
	id := put(t, q, 1)
	h, _ := take(t, q, r)
	h.lose(&queue.LeaseLostError{Cause: queue.LossExpired})
	if got, err := settled(r, h, verdict{act: ack, outcome: Acked}, r.ackMany); got != Lost || !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("%s, %v", got, err)
	}
	if r := record(t, q, id); r.State != queue.Leased {
		t.Errorf("state %s", r.State)
	}
}
