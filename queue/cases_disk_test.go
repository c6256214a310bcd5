package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

// disks are small ones, with the way to make room on them.
var disks = map[string]func(t *testing.T) (s *queue.Store, makeRoom func()){
	"a bound of pages": func(t *testing.T) (*queue.Store, func()) {
		s := openStore(t, t.TempDir(), silent)
		ok(t, queue.LimitPages(s, 400))
		return s, func() { ok(t, queue.LimitPages(s, 0)) }
	},
	"a small disk": func(t *testing.T) (*queue.Store, func()) {
		disk := t.TempDir()
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=3m"); err != nil {
			t.Skip("no small disk can be mounted here: ", err)
		}
		t.Cleanup(func() { ok(t, unix.Unmount(disk, unix.MNT_DETACH)) })
		return openStore(t, filepath.Join(disk, "q"), silent), func() { ok(t, unix.Mount("", disk, "", unix.MS_REMOUNT, "size=64m")) }
	},
}

var silent = queue.WithLogger(slog.New(slog.DiscardHandler))

// faultLog is a slog handler that keeps the errors it is given.
type faultLog struct {
	slog.Handler
	mu     sync.Mutex
	faults []error
	first  chan struct{} // closed with the first
}

func newFaultLog() *faultLog {
	return &faultLog{Handler: slog.DiscardHandler, first: make(chan struct{})}
}

func (l *faultLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l *faultLog) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *faultLog) WithGroup(string) slog.Handler                    { return l }
func (l *faultLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) == 0 {
		close(l.first)
	}
	fault := errors.New(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if err, is := a.Value.Any().(error); is {
			fault = err
		}
		return true
	})
	l.faults = append(l.faults, fault)
	return nil
}

func TestCase21_AFullDiskIsToldOnceInAWhileAndWorkResumesWhenThereIsRoom(t *testing.T) {
	for name, disk := range disks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, makeRoom := disk(t)
			q := s.Default()
			stored, full := 0, error(nil)
			for range 10_000 {
				if _, full = q.Put(ctx, make([]byte, 1500)); full != nil {
					break
				}
				stored++
			}
			matches(t, full, queue.ErrDiskFull)
			same(t, "jobs, none of them half", int64(stored), stats(t, q).Ready)

			log := newFaultLog()
			stop := workThatNeedsRoom(t, s, log)
			select {
			case <-log.first:
			case <-time.After(10 * patience):
				t.Fatal("the Worker tells nothing")
			}
			began := time.Now()
			for range 50 { // while the Worker's own attempts go on
				if _, err := q.PutMany(ctx, []queue.NewJob{{Payload: make([]byte, 4<<20)}}); err != nil {
					matches(t, err, queue.ErrDiskFull)
				} else {
					stored++
				}
			}
			makeRoom()
			ok(t, second(q.Put(ctx, []byte("room again"))))
			stored++
			deadline := time.Now().Add(10 * patience)
			for st := stats(t, q); st.Failed != int64(stored); st = stats(t, q) {
				if time.Now().After(deadline) {
					t.Fatalf("of %d jobs: %+v", stored, st)
				}
				<-time.After(5 * time.Millisecond)
			}
			stop()
			if lines, most := len(log.faults), 2+int(time.Since(began)/(2*time.Second)); lines > most { // 10 in 10 s is too many
				t.Errorf("%d lines, want %d at most: %v", lines, most, log.faults)
			}
			matches(t, log.faults[0], queue.ErrDiskFull)
			found, err := s.Check(ctx, false)
			ok(t, err)
			same(t, "findings", 0, len(found))
		})
	}
}

// workThatNeedsRoom starts a Worker whose every job leaves a long error.
func workThatNeedsRoom(t *testing.T, s *queue.Store, log slog.Handler) (stop func()) {
	t.Helper()
	q, err := generics.On[[]byte](s, s.Default().Name())
	ok(t, err)
	w := generics.NewWorker(q.With(generics.Bytes()), func(context.Context, *generics.Job[[]byte]) error {
		return generics.Permanent(errors.New(strings.Repeat("needs room ", 700)))
	}, generics.Logger(slog.New(log)), generics.Concurrency(4))
	ctx, cancel := context.WithCancel(context.Background())
	ended := inBackground(func() (int, error) { return 0, w.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		_, err := ended.await(t)
		ok(t, err)
	})
	t.Cleanup(stop)
	return stop
}

// SQLite rolls the whole transaction back when the disk is full, and would run what follows outside of it, committing each
// statement by itself.
func TestATransactionThatAFullDiskEndedTakesNothingMore(t *testing.T) {
	ctx := t.Context()
	s := openStore(t, t.TempDir(), silent)
	q := s.Default()
	ok(t, second(q.Put(ctx, []byte("leased"))))
	j := mustGet(t, q)
	ok(t, s.Tx(ctx, func(tx *queue.Tx) error { return second(tx.ExecContext(ctx, "CREATE TABLE notes (text)")) }))
	ok(t, queue.LimitPages(s, 100))
	for name, next := range map[string]func(tx *queue.Tx) error{
		"put":       func(tx *queue.Tx) error { return second(q.PutTx(ctx, tx, []byte("small"))) },
		"ack":       func(tx *queue.Tx) error { return j.AckTx(ctx, tx) },
		"statement": func(tx *queue.Tx) error { return second(tx.ExecContext(ctx, "INSERT INTO notes VALUES ('small')")) },
		"query": func(tx *queue.Tx) error {
			if tx.QueryRowContext(ctx, "INSERT INTO notes VALUES ('small') RETURNING 1").Scan(new(int)) == nil {
				return nil
			}
			return queue.ErrDiskFull // a Row tells only that it has failed
		},
		"prepared": func(tx *queue.Tx) error { return second(tx.PrepareContext(ctx, "SELECT 1")) },
		"nothing":  func(*queue.Tx) error { return queue.ErrDiskFull }, // is done
	} {
		err := s.Tx(ctx, func(tx *queue.Tx) error {
			_, err := q.PutTx(ctx, tx, make([]byte, 1<<20))
			matches(t, err, queue.ErrDiskFull)
			matches(t, next(tx), queue.ErrDiskFull)
			return nil // as one does who takes it for a failure of that call only
		})
		if !errors.Is(err, queue.ErrDiskFull) {
			t.Errorf("%s after it: the transaction ended in %v, want ErrDiskFull", name, err)
		}
	}
	ok(t, queue.LimitPages(s, 0))
	same(t, "stats", queue.Stats{Processing: 1}, stats(t, q))
	var notes int
	ok(t, s.Tx(ctx, func(tx *queue.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT count(*) FROM notes").Scan(&notes)
	}))
	same(t, "notes", 0, notes)
}
