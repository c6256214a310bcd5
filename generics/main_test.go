package generics

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type deploy struct {
	App     string
	Version int64
}

// patience bounds every wait of a test. It is long, since it only shows when something hangs.
const patience = 30 * time.Second

func background(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func open[T any](t *testing.T, opts ...queue.Option) *Queue[T] {
	t.Helper()
	return openDir[T](t, t.TempDir(), opts...)
}

func openDir[T any](t *testing.T, dir string, opts ...queue.Option) *Queue[T] {
	t.Helper()
	q, err := Open[T](dir, append([]queue.Option{queue.WithLogger(slog.New(slog.DiscardHandler)), queue.WithDurability(queue.Normal)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

func put[T any](t *testing.T, q *Queue[T], value T, opts ...queue.PutOption) int64 {
	t.Helper()
	r, err := q.Put(background(t), value, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func record[T any](t *testing.T, q *Queue[T], id int64) queue.Record {
	t.Helper()
	r, _, err := q.Raw().Show(background(t), id)
	if err != nil {
		t.Fatal(err)
	}
	return *r
}

func history[T any](t *testing.T, q *Queue[T], id int64) []queue.Delivery {
	t.Helper()
	_, d, err := q.Raw().Show(background(t), id)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func stats[T any](t *testing.T, q *Queue[T]) queue.Stats {
	t.Helper()
	s, err := q.Stats(background(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs a Worker and returns the function that stops it and gives Run's error.
func start[T any](t *testing.T, w *Worker[T]) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return receive(t, result)
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// receive waits for a value.
func receive[V any](t *testing.T, c <-chan V) (v V) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal("waited too long")
	}
	return v
}

// eventually waits until a condition that no channel tells of has come true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// events collects what OnDone tells.
type events chan Event

func newEvents() events { return make(events, 1000) }

func (e events) hook() WorkerOption { return OnDone(func(ev Event) { e <- ev }) }

// locker holds the file's write lock, through a Store of its own, until it is released.
func lock(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	store, err := queue.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	held, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- store.Tx(context.Background(), func(*queue.Tx) error {
			close(held)
			<-done
			return nil
		})
	}()
	receive(t, held)
	unlock = sync.OnceFunc(func() {
		close(done)
		if err := receive(t, ended); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(unlock)
	return unlock
}

// clock is a wall clock that can be set.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// logbook is a slog handler that keeps what it is given.
type logbook struct {
	slog.Handler
	lines chan slog.Record
}

func newLogbook() *logbook {
	return &logbook{Handler: slog.DiscardHandler, lines: make(chan slog.Record, 10_000)}
}

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logbook) WithGroup(string) slog.Handler            { return l }
func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	l.lines <- r
	return nil
}
