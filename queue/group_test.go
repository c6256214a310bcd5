package queue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

// Callers that share a transaction: each gets its own answer, and what spoils the transaction spoils it for those in it
// and nobody else.

// meanwhile keeps a transaction open until all calls have joined the next one, and returns their errors.
func meanwhile(t *testing.T, s *queue.Store, calls ...func() error) []error {
	t.Helper()
	errs := make([]error, len(calls))
	var all sync.WaitGroup
	ok(t, queue.InTransaction(context.Background(), s, func() error {
		for i, call := range calls {
			all.Add(1)
			joins(s, func() { defer all.Done(); errs[i] = call() })
		}
		return nil
	}))
	all.Wait()
	return errs
}

func mustGet(t *testing.T, q *queue.Queue) *queue.Job {
	t.Helper()
	j, err := q.TryGet(context.Background())
	ok(t, err)
	return j
}

func stats(t *testing.T, q *queue.Queue) queue.Stats {
	t.Helper()
	st, err := q.Stats(context.Background())
	ok(t, err)
	st.Queue, st.OldestAge = "", 0
	return st
}

func TestCallersShareACommitAndEachFailsForItself(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t)
	q := s.Default()
	limited, err := s.Queue("limited", queue.WithMaxPending(1))
	ok(t, err)
	ok(t, second(limited.Put(ctx, nil)))
	var jobs []*queue.Job
	for range 6 {
		ok(t, second(q.Put(ctx, []byte("x"), queue.MaxRetries(5))))
	}
	for range 6 {
		jobs = append(jobs, mustGet(t, q))
	}
	ok(t, jobs[5].Ack(ctx))
	before, err := queue.DataVersion(s)
	ok(t, err)
	errs := meanwhile(t, s,
		func() error { return jobs[0].Ack(ctx) },
		func() error { return jobs[1].Ack(ctx) },
		func() error { return jobs[5].Ack(ctx) }, // settled already
		func() error { return jobs[2].Nack(ctx, errBoom, queue.Delay(time.Hour)) },
		func() error { return jobs[3].Fail(ctx, errBoom) },
		func() error { return second(jobs[4].Extend(ctx, time.Hour)) },
		func() error { return q.Ack(ctx, 1000, "no receipt") },
		func() error { return second(limited.TryPut(ctx, nil)) },
		func() error { return second(q.Put(ctx, []byte("a"))) },
		func() error { return second(q.Put(ctx, []byte("b"))) },
		func() error { return second(q.Put(ctx, []byte("c"), queue.JobID("key"))) },
		func() error {
			return second(q.PutMany(ctx, []queue.NewJob{{Payload: []byte("d")}, {Payload: []byte("e")}}))
		},
	)
	for i, want := range []error{nil, nil, queue.ErrLeaseLost, nil, nil, nil, queue.ErrNotFound, queue.ErrFull, nil, nil, nil, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("call %d: %v, want %v", i, errs[i], want)
		}
	}
	same(t, "stats", queue.Stats{Ready: 6, Delayed: 1, Processing: 1, Acked: 3, Failed: 1}, stats(t, q))
	after, err := queue.DataVersion(s)
	ok(t, err)
	same(t, "commits seen by a reader", int64(1), after-before) // data_version moves once for what it hasn't looked at
	ok(t, second(s.Check(ctx, false)))
}

func TestPutsOfManyCallersBecomeOneStatementAndEachGetsItsOwnID(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t)
	q := s.Default()
	const n = 50
	ids := make([]int64, n)
	calls := make([]func() error, n)
	for i := range calls {
		calls[i] = func() error {
			res, err := q.Put(ctx, fmt.Append(nil, i))
			ids[i] = res.ID
			return err
		}
	}
	for i, err := range meanwhile(t, s, calls...) {
		if err != nil {
			t.Errorf("put %d: %v", i, err)
		}
	}
	for i, id := range ids {
		info, _, err := q.Show(ctx, id)
		ok(t, err)
		same(t, "payload", fmt.Sprint(i), string(info.Payload))
	}
}

func TestClaimsOfManyCallersEachGetAJobWhileThereAreAny(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t)
	q := s.Default()
	for i := range 5 {
		ok(t, second(q.Put(ctx, fmt.Append(nil, i))))
	}
	ok(t, mustGet(t, q).Release(ctx)) // a claim that found something: the next don't look first
	var mu sync.Mutex
	seen := map[int64]int{}
	get := func(n int) func() error {
		return func() error {
			jobs, err := q.TryGetMany(ctx, n)
			mu.Lock()
			defer mu.Unlock()
			for _, j := range jobs {
				seen[j.ID]++
			}
			return err
		}
	}
	errs := meanwhile(t, s, get(1), get(4), get(1), get(1), get(1), get(1))
	empty := 0
	for _, err := range errs {
		if errors.Is(err, queue.ErrEmpty) {
			empty++
		} else if err != nil {
			t.Error(err)
		}
	}
	same(t, "jobs claimed", map[int64]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1}, seen)
	same(t, "callers without a job", 1, empty)
}

func TestAStatementThatSpoilsTheTransactionFailsOnlyItsCaller(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t)
	q := s.Default()
	ok(t, s.Tx(ctx, func(tx *queue.Tx) error {
		return second(tx.ExecContext(ctx, `CREATE TRIGGER somebodys BEFORE INSERT ON messages WHEN new.payload = CAST('bad' AS BLOB)
			BEGIN SELECT RAISE(ABORT, 'no bad jobs'); END`))
	}))
	put := func(payload string) func() error {
		return func() error { return second(q.Put(ctx, []byte(payload))) }
	}
	errs := meanwhile(t, s, put("a"), put("bad"), put("b"))
	if errs[0] != nil || errs[2] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "no bad jobs") {
		t.Errorf("errors %v; want only the second, with its reason", errs)
	}
	same(t, "stats", queue.Stats{Ready: 2}, stats(t, q))
}

func TestAFullDiskFailsExactlyTheCallersInThatBatch(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t)
	q := s.Default()
	ok(t, second(q.Put(ctx, []byte("x"))))
	ok(t, queue.LimitPages(s, 100))
	stored, failed := 1, 0
	payload := make([]byte, 1500)
	for failed == 0 {
		calls := make([]func() error, 8)
		for i := range calls {
			calls[i] = func() error { return second(q.Put(ctx, payload, queue.Priority(int16(i%2)))) }
		}
		for _, err := range meanwhile(t, s, calls...) {
			switch {
			case err == nil:
				stored++
			case errors.Is(err, queue.ErrDiskFull):
				failed++
			default:
				t.Fatal(err)
			}
		}
	}
	same(t, "callers of the batch that failed", 8, failed)
	same(t, "stats", queue.Stats{Ready: int64(stored)}, stats(t, q))
	ok(t, queue.LimitPages(s, 0))
	ok(t, second(q.Put(ctx, payload)))
	ok(t, second(s.Check(ctx, false)))
}

func TestACallerThatLeavesBeforeItsBatchHasDoneNothing(t *testing.T) {
	s := queuetest.Open(t)
	q := s.Default()
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	ok(t, queue.InTransaction(context.Background(), s, func() error {
		go func() { left <- second(q.Put(ctx, []byte("x"))) }()
		for queue.Joined(s) == 0 {
			runtime.Gosched()
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) || !errors.Is(err, queue.ErrBusy) || errors.Is(err, queue.ErrOutcomeUnknown) {
			t.Errorf("the caller that left got %v", err)
		}
		return nil
	}))
	same(t, "stats", queue.Stats{}, stats(t, q))
}

// whileCommitting has a call join a transaction of somebody else's, and runs fn while that commits.
func whileCommitting(t *testing.T, s *queue.Store, call, fn func()) {
	t.Helper()
	reached, release := make(chan struct{}, 100), make(chan struct{})
	ok(t, queue.HoldCommits(s, reached, release))
	leader := inBackground(func() (int, error) {
		return 0, queue.InTransaction(context.Background(), s, func() error { joins(s, call); return nil })
	})
	<-reached
	fn()
	close(release)
	_, err := leader.await(t)
	ok(t, err)
}

// joins starts a call and returns once it waits for its transaction.
func joins(s *queue.Store, call func()) {
	before := queue.Joined(s)
	go call()
	for queue.Joined(s) == before {
		runtime.Gosched()
	}
}

func TestACallerWithoutTimeLeavesACommitUnderWayAndSaysThatItDoesntKnow(t *testing.T) {
	s := queuetest.Open(t, queue.WithDurability(queue.Normal)) // so that any call fits any transaction
	q := s.Default()
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	whileCommitting(t, s, func() { left <- second(q.Put(ctx, []byte("x"))) }, func() {
		cancel()
		if err := <-left; !errors.Is(err, queue.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left got %v", err)
		}
	})
	same(t, "stats", queue.Stats{Ready: 1}, stats(t, q))
}

// Its payload is still to be read, and its result to be written.
func TestACallerWithoutTimeStaysWhileItsStatementsRun(t *testing.T) {
	s := queuetest.Open(t, queue.WithDurability(queue.Normal))
	q := s.Default()
	ctx, cancel := context.WithCancel(context.Background())
	put := make(chan error, 1)
	running, mayEnd := make(chan struct{}), make(chan struct{})
	leader := inBackground(func() (int, error) {
		return 0, queue.InTransaction(context.Background(), s, func() error {
			joins(s, func() { put <- second(q.Put(ctx, []byte("x"))) })
			joins(s, func() {
				put <- queue.InTransaction(context.Background(), s, func() error { close(running); <-mayEnd; return nil })
			})
			return nil
		})
	})
	<-running
	cancel()
	select {
	case err := <-put:
		t.Errorf("it left its running transaction with %v", err)
	case <-time.After(4 * queue.GraceInBatch):
	}
	close(mayEnd)
	_, err := leader.await(t)
	ok(t, err)
	for range 2 {
		if err := <-put; err != nil && !errors.Is(err, queue.ErrOutcomeUnknown) { // the commit may outlast its patience
			t.Error(err)
		}
	}
	same(t, "stats", queue.Stats{Ready: 1}, stats(t, q))
}

func TestAJobClaimedForACallerWhoHasLeftIsGivenBack(t *testing.T) {
	s := queuetest.Open(t, queue.WithDurability(queue.Normal)) // so that any call fits any transaction
	q := s.Default()
	ok(t, second(q.Put(context.Background(), []byte("x"), queue.MaxRetries(0))))
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	whileCommitting(t, s, func() {
		jobs, err := q.GetMany(ctx, 1)
		if len(jobs) > 0 { // they are given back
			t.Errorf("%d jobs came with the error", len(jobs))
		}
		left <- err
	}, func() {
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left got %v", err)
		}
	})
	back, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	j, err := q.Get(back)
	ok(t, err)
	same(t, "the attempt isn't used", 1, j.Attempt)
	same(t, "the delivery number is", int64(2), j.Delivery)
}

func TestHeartbeatsAndSettlesGoBeforePuts(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t, queue.WithDurability(queue.Normal)) // so that any call fits any transaction
	q := s.Default()
	ok(t, second(q.Put(ctx, []byte("x"))))
	j := mustGet(t, q)
	big := make([]queue.NewJob, 997) // with the leader's call a full transaction
	var mu sync.Mutex
	var order []string
	done := func(what string, err error) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
		return err
	}
	for i, err := range meanwhile(t, s,
		func() error { return done("first batch", second(q.PutMany(ctx, big))) },
		func() error { return done("second batch", second(q.PutMany(ctx, big))) },
		func() error { return done("third batch", second(q.PutMany(ctx, big))) },
		func() error { return done("beat", second(q.Heartbeat(ctx, []queue.Ref{j.Ref()}, time.Minute))) },
		func() error { return done("ack", j.Ack(ctx)) },
	) {
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	for _, what := range []string{"beat", "ack"} {
		if slices.Index(order, what) > slices.Index(order, "second batch") {
			t.Errorf("the %s waited for batches of puts: %q", what, order)
		}
	}
}
