package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Another process keeps the write lock for longer than the busy timeout. What waits in the suite's operations is in
// busyCases; here is the rest.

// saysBusy fails the test unless err is ErrBusy in words of our own.
func saysBusy(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s did without the lock", what)
		return
	}
	matches(t, err, queue.ErrBusy)
	if text := err.Error(); !strings.Contains(text, queue.ErrBusy.Error()) || strings.Contains(text, "\n") {
		t.Errorf("%s says %q", what, text)
	}
}

func TestCase01_WhatTheLockKeepsOutForLongerThanTheBusyTimeoutSaysBusy(t *testing.T) {
	dir, old := t.TempDir(), t.TempDir()
	originalFile(t, old)
	s := openStore(t, dir, queue.WithBusyTimeout(300*time.Millisecond))
	q, ctx := s.Default(), t.Context()
	for range 4 {
		ok(t, second(q.Put(ctx, []byte("x"))))
	}
	done, err := q.TryGet(ctx)
	ok(t, err)
	ok(t, done.Ack(ctx))
	failed, err := q.TryGet(ctx)
	ok(t, err)
	ok(t, failed.Fail(ctx, errBoom))
	held, err := q.TryGet(ctx)
	ok(t, err)
	other, beside := startProcess(t), startProcess(t)
	other.does("hold", dir)
	beside.does("hold", old)

	brief := queue.WithBusyTimeout(300 * time.Millisecond)
	calls := map[string]func() error{
		"put":      func() error { return second(q.Put(ctx, nil)) },
		"put many": func() error { return second(q.PutMany(ctx, []queue.NewJob{{}, {}})) },
		"get":      func() error { return second(q.Get(ctx)) },
		"purge":    func() error { return second(q.Purge(ctx, queue.PurgeOptions{})) },
		"vacuum":   func() error { return s.Vacuum(ctx) },
		"tx":       func() error { return s.Tx(ctx, func(*queue.Tx) error { return nil }) },
		"open of an old file": func() error {
			s, err := queue.Open(old, brief)
			if err == nil {
				ok(t, s.Close())
			}
			return err
		},
		"migration of an old file": func() error { return second(queue.Migrate(ctx, old, brief)) },
	}
	settling := map[string]func() error{
		"ack":       func() error { return held.Ack(ctx) },
		"nack":      func() error { return held.Nack(ctx, errBoom) },
		"extend":    func() error { return second(held.Extend(ctx, time.Hour)) },
		"heartbeat": func() error { return second(q.Heartbeat(ctx, []queue.Ref{held.Ref()}, time.Hour)) },
		"cancel":    func() error { return q.Cancel(ctx, held.ID) },
		"retry":     func() error { return q.RetryFailed(ctx, failed.ID) },
	}
	patient := openStore(t, dir, queue.WithBusyTimeout(3*time.Second)).Default()
	waits := inBackground(func() (queue.PutResult, error) { return patient.Put(ctx, []byte("patient")) })
	all := map[string]*pending[int]{}
	for name, call := range settling {
		all[name] = inBackground(func() (int, error) { return 0, call() })
	}
	for name, call := range calls {
		all[name] = inBackground(func() (int, error) { return 0, call() })
	}
	for name, p := range all { // each answers while the lock is still held, and before one that has ten times its patience
		_, err := p.await(t)
		saysBusy(t, name, err)
	}
	select {
	case a := <-waits.done:
		t.Fatalf("the busy timeout of 300 ms took as long as that of 3 s, which ended with %v", a.err)
	default:
	}
	ok(t, second(q.Stats(ctx)))
	ok(t, second(q.List(ctx, queue.Ready, queue.ListOptions{})))
	ok(t, second(queue.MigrateStatus(ctx, old)))
	ok(t, second(s.Check(ctx, false)))
	visitor, err := queue.Open(dir, brief) // needs nothing that is locked
	ok(t, err)
	ok(t, visitor.Close())

	other.does("release", dir)
	beside.does("release", old)
	ok(t, second(waits.await(t)))
	st, err := q.Stats(ctx)
	ok(t, err)
	same(t, "jobs", []int64{2, 1, 1, 1}, []int64{st.Ready, st.Processing, st.Acked, st.Failed})
	ok(t, second(held.Extend(ctx, time.Hour)))
	ok(t, held.Ack(ctx))
	ok(t, q.RetryFailed(ctx, failed.ID))
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s after the lock: %v", name, err)
		}
	}
	found, err := s.Check(ctx, true)
	ok(t, err)
	same(t, "findings", 0, len(found))
}

func TestCase01_CloseDoesNotWaitForALockOfAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, queue.WithBusyTimeout(time.Hour))
	works(t, s)
	other := startProcess(t)
	other.does("hold", dir)
	var calls []*pending[queue.PutResult]
	for range 5 {
		calls = append(calls, inBackground(func() (queue.PutResult, error) { return s.Default().Put(context.Background(), []byte("late")) }))
	}
	calls[0].stillWaits(t)
	closed := inBackground(func() (int, error) { return 0, s.Close() })
	ok(t, second(closed.await(t)))
	for _, c := range calls {
		matches(t, second(c.await(t)), queue.ErrClosed)
	}
	other.does("release", dir)
	again := openStore(t, dir)
	st, err := again.Default().Stats(t.Context())
	ok(t, err)
	same(t, "jobs: none of the puts that were told ErrClosed", int64(0), st.Ready)
	works(t, again)
}
