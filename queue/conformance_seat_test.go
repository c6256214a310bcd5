package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/localqueue/localqueue/queue"
)

// seat is a Store that carries out the suite's operations: in the test's own process or in a server.
type seat struct {
	store *queue.Store

	mu     sync.Mutex
	queues map[string]*queue.Queue // kept, since a Queue remembers whether its last claim found something
}

func openSeat(dir string, o storeOpts, clock func() time.Time) (*seat, error) {
	s, err := queue.Open(dir, o.options(clock)...)
	return &seat{store: s, queues: map[string]*queue.Queue{}}, err
}

func (s *seat) queue(name bin, o queueOpts) (*queue.Queue, error) {
	key := fmt.Sprintf("%q %v %v %v", string(name), o.Lease, o.MaxPending, o.MaxPayload)
	if o.MaxRetries != nil {
		key += fmt.Sprint(" ", *o.MaxRetries)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		return q, nil
	}
	q, err := s.store.Queue(string(name), o.options()...)
	if err == nil {
		s.queues[key] = q
	}
	return q, err
}

// run carries out one operation.
func (s *seat) run(ctx context.Context, r wireRequest) wireResponse {
	if op := storeOps[r.Op]; op != nil {
		return op(ctx, s, r)
	}
	op := queueOps[r.Op]
	if op == nil {
		return wireFailed(fmt.Errorf("no operation %q", r.Op))
	}
	q, err := s.queue(r.Queue, r.With)
	if err != nil {
		return wireFailed(err)
	}
	return op(ctx, q, r)
}

var storeOps = map[string]func(context.Context, *seat, wireRequest) wireResponse{
	"queues": func(ctx context.Context, s *seat, _ wireRequest) (out wireResponse) {
		out.Stats, out.Err.error = s.store.Queues(ctx)
		return out
	},
	"check": func(ctx context.Context, s *seat, r wireRequest) (out wireResponse) {
		out.Findings, out.Err.error = s.store.Check(ctx, r.Quick)
		return out
	},
	"vacuum": func(ctx context.Context, s *seat, _ wireRequest) wireResponse { return wireFailed(s.store.Vacuum(ctx)) },
	"shut":   func(_ context.Context, s *seat, _ wireRequest) wireResponse { return wireFailed(s.store.Close()) },
	"waiting": func(_ context.Context, s *seat, _ wireRequest) wireResponse {
		return wireResponse{N: int(queue.Waiting(s.store))}
	},
	"tx": func(ctx context.Context, s *seat, r wireRequest) wireResponse { return s.transact(ctx, r, s.store.Tx) },
	"ackWith": func(ctx context.Context, s *seat, r wireRequest) wireResponse {
		q, err := s.queue(r.Queue, r.With)
		if err != nil {
			return wireFailed(err)
		}
		return s.transact(ctx, r, func(ctx context.Context, fn func(*queue.Tx) error) error {
			return q.AckWith(ctx, r.ID, string(r.Receipt), fn)
		})
	},
}

var errUndo = errors.New("undone on purpose")

// transact carries out steps in one transaction: the Store's own, or a *sql.Tx of a caller's connection. It stops at the
// first step that fails, which undoes all.
func (s *seat) transact(ctx context.Context, r wireRequest, own func(context.Context, func(*queue.Tx) error) error) (out wireResponse) {
	steps := func(tx queue.DBTX) error {
		for _, step := range r.Steps {
			done := s.step(ctx, tx, step)
			out.Steps = append(out.Steps, done)
			if done.Err.error != nil {
				return done.Err.error
			}
		}
		if r.Undo {
			return errUndo
		}
		return nil
	}
	if !r.Foreign {
		out.Err.error = own(ctx, func(tx *queue.Tx) error { return steps(tx) })
	} else {
		out.Err.error = inForeignTx(ctx, s.store.Dir(), steps)
	}
	if r.Undo && errors.Is(out.Err.error, errUndo) {
		out.Err.error = nil
	}
	return out
}

// inForeignTx runs fn in a transaction of database/sql on the file of a directory.
func inForeignTx(ctx context.Context, dir string, fn func(queue.DBTX) error) (err error) {
	db, err := openRaw(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// openRaw opens the file of a directory as any program with SQLite would.
func openRaw(dir string) (*sql.DB, error) {
	path := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.Join(dir, "localqueue.db"))
	return sql.Open("sqlite3", "file:"+path+"?_busy_timeout=5000&_txlock=immediate&mode=rw")
}

func (s *seat) step(ctx context.Context, tx queue.DBTX, r wireRequest) (out wireResponse) {
	if r.Op == "sql" {
		_, out.Err.error = tx.ExecContext(ctx, r.SQL)
		return out
	}
	q, err := s.queue(r.Queue, r.With)
	if err != nil {
		return wireFailed(err)
	}
	switch r.Op {
	case "put":
		var res queue.PutResult
		res, out.Err.error = q.PutTx(ctx, tx, r.Jobs[0].Payload, r.Jobs[0].options()...)
		out.Puts = []queue.PutResult{res}
	case "putMany":
		out.Puts, out.Err.error = q.PutManyTx(ctx, tx, r.newJobs())
	case "ack":
		out.Err.error = q.AckTx(ctx, tx, r.ID, string(r.Receipt))
	case "nack":
		out.Err.error = q.NackTx(ctx, tx, r.ID, string(r.Receipt), r.cause(), r.settling()...)
	case "fail":
		out.Err.error = q.FailTx(ctx, tx, r.ID, string(r.Receipt), r.cause(), r.settling()...)
	case "release":
		out.Err.error = q.ReleaseTx(ctx, tx, r.ID, string(r.Receipt), r.settling()...)
	default:
		out.Err.error = fmt.Errorf("no step %q", r.Op)
	}
	return out
}

func (r wireRequest) newJobs() []queue.NewJob {
	jobs := make([]queue.NewJob, len(r.Jobs))
	for i, j := range r.Jobs {
		jobs[i] = queue.NewJob{Payload: j.Payload, Options: j.options()}
	}
	return jobs
}

func (r wireRequest) cause() error {
	if r.Cause == nil {
		return nil
	}
	return errors.New(string(*r.Cause))
}

func (r wireRequest) settling() (opts []queue.SettleOption) {
	if r.Delay != nil {
		opts = append(opts, queue.Delay(*r.Delay))
	}
	if r.As != nil {
		opts = append(opts, queue.As(*r.As))
	}
	return opts
}
