package queue_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/localqueue/localqueue/queue"
	"pgregory.net/rapid"
)

// TestModelAndEngineAgree runs random operations on two Stores with clocks of their own, on one file, and on the model,
// and compares answers, every job, counters and order after each step. For a longer run:
//
//	go test ./queue -run TestModel -rapid.checks=10000
//
// A failure is shrunk; the log then reads as the shortest story that shows it.
func TestModelAndEngineAgree(t *testing.T) {
	modelDefault("rapid.steps", "80")
	modelDefault("rapid.checks", "50")
	mm := &modelMachine{dir: modelDir(t), ctx: context.Background()}
	for _, name := range []string{"a", "b"} {
		mm.stores = append(mm.stores, &modelStore{name: name, clock: &modelClock{}})
	}
	t.Cleanup(func() { mm.close(t) })
	rapid.Check(t, func(rt *rapid.T) {
		mm.begin(rt)
		rt.Repeat(mm.actions())
		mm.compareStories(rt, mm.stores[0], true)
	})
}

// modelDefault changes a flag's default; a flag that was given stays.
func modelDefault(name, value string) {
	_, given := os.LookupEnv(strings.ToUpper(strings.ReplaceAll(name, ".", "_")))
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if f := flag.Lookup(name); f != nil && !given {
		_ = f.Value.Set(value)
	}
}

// modelDir is in memory where the machine has such a place, unless TMPDIR says where to work: the model needs no disk.
func modelDir(t *testing.T) string {
	if os.Getenv("TMPDIR") != "" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "localqueue-model-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// modelClock stands still until the test moves it. It has microseconds, which the engine must drop.
type modelClock struct{ us atomic.Int64 }

func (c *modelClock) now() time.Time          { return time.UnixMicro(c.us.Load()) }
func (c *modelClock) millis() time.Time       { return time.UnixMilli(c.now().UnixMilli()).UTC() }
func (c *modelClock) advance(d time.Duration) { c.us.Add(d.Microseconds()) }
func (c *modelClock) reset()                  { c.us.Store(1_893_456_000_000_700) } // 2030-01-01, and 0.7 ms

type modelStore struct {
	name  string
	clock *modelClock
	s     *queue.Store
	q     map[string]*queue.Queue
}

func (st *modelStore) who() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), st.name)
}

// modelHandle is a queue through one of the Stores.
type modelHandle struct {
	st *modelStore
	q  *queue.Queue
}

func (h modelHandle) String() string { return h.st.name + "." + h.q.Name() }

type modelMachine struct {
	dir     string
	ctx     context.Context
	stores  []*modelStore
	foreign *sql.DB // a caller's own connections to the file
	m       *model
	granted []queue.Ref // every delivery so far
	steps   int
}

const modelForever = 100 * 365 * 24 * time.Hour

func modelQueues() []*modelQueue {
	return []*modelQueue{{name: "q", lease: 2 * time.Second, retries: 1}, {name: "lim", lease: time.Minute + 300*time.Microsecond, retries: 2, limit: 6}}
}

func (mm *modelMachine) open(t rapid.TB, st *modelStore) {
	t.Helper()
	s, err := queue.Open(mm.dir, queue.WithDurability(queue.Normal), queue.WithClock(st.clock.now), queue.WithName(st.name))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	st.s, st.q = s, map[string]*queue.Queue{}
	for _, mq := range modelQueues() {
		q, err := s.Queue(mq.name, queue.WithLease(mq.lease), queue.WithMaxRetries(mq.retries), queue.WithMaxPending(mq.limit))
		if err != nil {
			t.Fatalf("queue: %v", err)
		}
		st.q[mq.name] = q
	}
}

func (mm *modelMachine) reopen(t *rapid.T) {
	st := mm.store(t, "store")
	if err := st.s.Close(); err != nil {
		modelFail(t, "close: %v", err)
	}
	st.s = nil
	mm.open(t, st)
	t.Logf("%s is opened anew", st.name)
}

func (mm *modelMachine) close(t *testing.T) {
	for _, st := range mm.stores {
		if st.s != nil {
			if err := st.s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	}
	if mm.foreign != nil {
		if err := mm.foreign.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// begin empties the file for another run: opening two new Stores would cost more than the run.
func (mm *modelMachine) begin(t *rapid.T) {
	mm.m, mm.granted, mm.steps = newModel(modelQueues()...), nil, 0
	for _, st := range mm.stores {
		if st.clock.reset(); st.s == nil {
			mm.open(t, st)
		}
	}
	if mm.foreign == nil {
		db, err := sql.Open("sqlite3", "file:"+filepath.Join(mm.dir, "localqueue.db")+"?_txlock=immediate&_busy_timeout=10000&_foreign_keys=1")
		if err != nil {
			t.Fatalf("open a connection of the caller's: %v", err)
		}
		mm.foreign = db
	}
	for left := -1; left != 0; {
		tx, err := mm.foreign.BeginTx(mm.ctx, nil)
		if err == nil {
			_, err = tx.ExecContext(mm.ctx, "DELETE FROM messages; DELETE FROM queues; DELETE FROM sqlite_sequence WHERE name = 'messages'")
		}
		if err == nil {
			err = tx.Commit()
		}
		if err == nil {
			err = mm.foreign.QueryRowContext(mm.ctx, "SELECT count(*) FROM messages").Scan(&left)
		}
		if err != nil {
			t.Fatalf("empty the file: %v", err)
		}
	}
}

func (mm *modelMachine) op(h modelHandle) modelOp {
	return modelOp{m: mm.m, q: mm.m.queue(h.q.Name()), now: h.st.clock.millis(), who: h.st.who()}
}

// handle draws a queue, and the Store to reach it through.
func (mm *modelMachine) handle(t *rapid.T) modelHandle {
	name := rapid.SampledFrom([]string{"a.q", "b.q", "a.lim", "b.lim"}).Draw(t, "through")
	st := mm.stores[name[0]-'a']
	return modelHandle{st, st.q[name[2:]]}
}

// store draws a Store.
func (mm *modelMachine) store(t *rapid.T, label string) *modelStore {
	return mm.stores[rapid.SampledFrom([]string{"a", "b"}).Draw(t, label)[0]-'a']
}

// agree compares an answer with the model's.
func (mm *modelMachine) agree(t *rapid.T, what string, got, want any, err error, kind string) {
	t.Helper()
	t.Logf("%s: %s", what, modelAnswer(want, kind))
	if got := modelKind(err); got != kind {
		modelFail(t, "%s: the errors differ\n-model:  %q\n+engine: %q (%v)", what, kind, got, err)
	}
	modelSame(t, what, got, want)
}

func modelAnswer(want any, kind string) string {
	if kind != "" {
		return kind
	}
	if jobs, ok := want.([]*queue.Job); ok {
		text := ""
		for _, j := range jobs {
			text += fmt.Sprintf("job %d delivery %d until %s; ", j.ID, j.Delivery, j.LeaseUntil.Format("15:04:05.000"))
		}
		return text
	}
	return fmt.Sprintf("%+v", want)
}

func modelSame(t *rapid.T, what string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) { // quick; cmp then ignores what doesn't matter and explains
		return
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(queue.Job{}), cmpopts.EquateEmpty()); diff != "" {
		modelFail(t, "%s: model and engine differ (-model +engine):\n%s", what, diff)
	}
}

// modelFail logs what differs and fails with a text that is always the same: shrinking takes another text, and be it
// another receipt, for another failure.
func modelFail(t *rapid.T, format string, args ...any) {
	t.Helper()
	t.Logf(format, args...)
	t.Fatalf("model and engine differ; the last lines of the log say where")
}

// compare is run after each step: every job, the counters, and who comes next, through the Stores in turn.
func (mm *modelMachine) compare(t *rapid.T) {
	mm.steps++
	st := mm.stores[mm.steps%len(mm.stores)]
	for _, mq := range mm.m.queues {
		h := modelHandle{st, st.q[mq.name]}
		want := mm.op(h).stats()
		got, err := h.q.Stats(mm.ctx)
		if err != nil {
			modelFail(t, "stats: %v", err)
		}
		modelSame(t, "Stats of "+h.String(), got, want)
		for _, state := range []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed} {
			want := mm.m.records(mq.name, state)
			if len(want) == 0 {
				continue // the counters have said so, and Check compares them with the rows
			}
			page, err := h.q.List(mm.ctx, state, queue.ListOptions{Limit: 1000})
			if err != nil {
				modelFail(t, "list: %v", err)
			}
			modelSame(t, fmt.Sprintf("the %s jobs of %s", state, h), page.Records, want)
		}
		next, err := h.q.Peek(mm.ctx)
		wantNext, kind := mm.op(h).peek()
		if modelKind(err) != kind {
			modelFail(t, "peek at %s: %v, the model says %q", h, err, kind)
		}
		modelSame(t, "Peek at "+h.String(), next, wantNext)
	}
	mm.compareStories(t, st, false)
	findings, err := st.s.Check(mm.ctx, true)
	if err != nil || len(findings) > 0 {
		modelFail(t, "check finds %+v, error %v", findings, err)
	}
}

// compareStories compares the failed deliveries of all jobs, or of those that a step changed.
func (mm *modelMachine) compareStories(t *rapid.T, st *modelStore, all bool) {
	for id, j := range mm.m.jobs {
		if !j.touched && !all {
			continue
		}
		j.touched = false
		rec, story, err := st.q[j.Queue].Show(mm.ctx, id)
		if err != nil {
			modelFail(t, "show: %v", err)
		}
		modelSame(t, fmt.Sprintf("job %d", id), *rec, j.Record)
		modelSame(t, fmt.Sprintf("the failed deliveries of job %d", id), story, slices.Clone(j.story))
	}
}
