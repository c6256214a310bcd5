package queue_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Before a migration is released, a file of the schema it starts from must be kept: every later migration is tested from
// it. LOCALQUEUE_TEST_ROLE=make-fixture go test ./queue (make fixtures) writes the one of the present schema to
// testdata/released, unless it is there: what was released is never written again.

func init() {
	roles["make-fixture"] = func() {
		if err := makeFixture(filepath.Join("testdata", "released")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func makeFixture(to string) (err error) {
	dir, err := os.MkdirTemp("", "fixture")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	clock := &fakeClock{}
	clock.set(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // stamps are the same in every run
	s, err := queue.Open(dir, queue.WithClock(clock.now), queue.WithName("fixture"))
	if err != nil {
		return err
	}
	m := &fixtureMaker{s: s, clock: clock}
	m.fill()
	manifest := m.describe()
	if err := errors.Join(m.err, s.Close()); err != nil {
		return err
	}
	steps, err := queue.MigrateStatus(context.Background(), dir)
	if err != nil {
		return err
	}
	name := filepath.Join(to, fmt.Sprintf("%05d", steps[len(steps)-1].Version))
	data, err := os.ReadFile(filepath.Join(dir, "localqueue.db"))
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	_, err = gz.Write(data)
	if err := errors.Join(err, gz.Close(), os.MkdirAll(to, 0o755)); err != nil {
		return err
	}
	return errors.Join(writeNew(name+".db.gz", packed.Bytes()), writeNew(name+".json", manifest))
}

// writeNew leaves a file alone that is there.
func writeNew(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		fmt.Println(name, "is there")
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	fmt.Println(name, "made")
	return errors.Join(err, f.Close())
}

// fixtureMaker does things to a Store until the first error.
type fixtureMaker struct {
	s     *queue.Store
	clock *fakeClock
	err   error
}

func (m *fixtureMaker) must(err error) {
	if m.err == nil && err != nil {
		m.err = err
	}
	m.clock.set(m.clock.now().Add(time.Second)) // each step has its own stamp
}

func (m *fixtureMaker) queue(name string, opts ...queue.Option) *queue.Queue {
	q, err := m.s.Queue(name, opts...)
	m.must(err)
	return q
}

func (m *fixtureMaker) put(q *queue.Queue, payload string, opts ...queue.PutOption) int64 {
	res, err := q.Put(context.Background(), []byte(payload), opts...)
	m.must(err)
	return res.ID
}

// claim claims a job and settles it; a nil settle leaves it leased.
func (m *fixtureMaker) claim(q *queue.Queue, settle func(context.Context, *queue.Job) error) {
	j, err := q.TryGet(context.Background())
	if m.must(err); m.err == nil && settle != nil {
		m.must(settle(context.Background(), j))
	}
}

func ack(ctx context.Context, j *queue.Job) error { return j.Ack(ctx) }

func nackWith(text string, opts ...queue.SettleOption) func(context.Context, *queue.Job) error {
	return func(ctx context.Context, j *queue.Job) error { return j.Nack(ctx, errors.New(text), opts...) }
}

func failWith(text string, opts ...queue.SettleOption) func(context.Context, *queue.Job) error {
	return func(ctx context.Context, j *queue.Job) error { return j.Fail(ctx, errors.New(text), opts...) }
}

const ninetyYears = 90 * 365 * 24 * time.Hour

// fill stores jobs in each state, by every way that leads there.
func (m *fixtureMaker) fill() {
	m.fillReady()
	m.fillHeld()
	m.fillFinished()
}

func (m *fixtureMaker) fillReady() {
	ctx := context.Background()
	q := m.queue("ready")
	m.put(q, "plain")
	m.put(q, "")
	m.put(q, "\x00\xff\xfe")
	m.put(q, repeat("beside the row ", 400))
	m.put(q, repeat("many pages ", 4000))
	m.put(q, `{"id":1970670598291982290,"text":"grüße, 世界"}`, queue.JobID("schlüssel"), queue.Header("trace", "größe"), queue.Header("b", ""))
	m.put(q, "high", queue.Priority(32767), queue.MaxRetries(0))
	m.put(q, "low", queue.Priority(-32768), queue.MaxRetries(1000))
	m.put(q, "pending", queue.JobID("pending"), queue.UniqueWhilePending())
	many := []queue.NewJob{{Payload: []byte("batch 1")}, {Payload: []byte("batch 2"), Options: []queue.PutOption{queue.JobID("batch")}}}
	_, err := q.PutMany(ctx, many)
	m.must(err)

	d := m.queue("delayed")
	m.put(d, "at", queue.At(m.clock.now().Add(ninetyYears)), queue.JobID("at"))
	m.put(d, "sent back")
	m.claim(d, nackWith("later", queue.Delay(ninetyYears)))
	m.must(d.RunNow(ctx, m.put(d, "run now", queue.At(m.clock.now().Add(ninetyYears)))))

	p := m.queue("paused")
	m.put(p, "waits")
	m.must(p.Pause(ctx))

	b := m.queue("back")
	for _, settle := range []func(context.Context, *queue.Job) error{nackWith("again: nochmals"),
		func(ctx context.Context, j *queue.Job) error { return j.Release(ctx) }} {
		m.put(b, "sent back", queue.Priority(1))
		m.claim(b, settle)
	}
	id := m.put(b, "retried", queue.Priority(2), queue.JobID("retried"))
	m.claim(b, failWith("no"))
	m.must(b.RetryFailed(ctx, id))
	long := m.put(m.queue("long"), "many failures", queue.MaxRetries(100))
	for n := range 25 {
		m.claim(m.queue("long"), nackWith(fmt.Sprintf("failure %d of job %d", n, long)))
	}
}

func (m *fixtureMaker) fillHeld() {
	l := m.queue("leased", queue.WithLease(ninetyYears))
	m.put(l, "first delivery", queue.JobID("leased"))
	m.claim(l, nil)
	m.put(l, "second delivery")
	m.claim(l, nackWith("the first time"))
	m.claim(l, nil)
	m.put(l, "last delivery", queue.MaxRetries(0), queue.JobID("pending"), queue.UniqueWhilePending())
	m.claim(l, nil)

	e := m.queue("expired", queue.WithLease(time.Hour))
	for n := range 4 {
		m.put(e, fmt.Sprint("ends ", n), queue.MaxRetries(3*min(n, 1)), queue.JobID(fmt.Sprint("expired-", n)))
	}
	_, err := e.TryGetMany(context.Background(), 4)
	m.must(err)
	m.clock.set(m.clock.now().Add(2 * time.Hour))
}

func (m *fixtureMaker) fillFinished() {
	ctx := context.Background()
	q := m.queue("done")
	m.must(q.KeepAcked(ctx, ninetyYears))
	m.put(q, "first delivery", queue.JobID("done"))
	m.claim(q, ack)
	for range 2 {
		m.put(q, repeat("a key that is given up ", 200), queue.JobID("pending"), queue.UniqueWhilePending())
		m.claim(q, nackWith("not yet"))
		m.claim(q, ack)
	}
	gone := m.queue("gone")
	m.must(gone.KeepAcked(ctx, 0))
	m.put(gone, "gone")
	m.claim(gone, ack)

	d := m.queue("dead", queue.WithLease(time.Millisecond))
	m.put(d, "permanent", queue.JobID("dead"), queue.Header("trace", "1"))
	m.claim(m.queue("dead"), failWith("no such customer: Müller"))
	m.put(d, "invalid payload")
	m.claim(m.queue("dead"), failWith("not JSON", queue.As(queue.InvalidPayload)))
	m.put(d, "exhausted", queue.MaxRetries(1))
	m.claim(m.queue("dead"), nackWith("once"))
	m.claim(m.queue("dead"), nackWith("twice"))
	m.put(d, "panic", queue.MaxRetries(0), queue.JobID("pending"), queue.UniqueWhilePending())
	m.claim(m.queue("dead"), nackWith("panic: nil map", queue.As(queue.Panicked)))
	m.must(d.Cancel(ctx, m.put(d, "cancelled")))
	m.put(d, "its lease ended", queue.MaxRetries(0))
	m.claim(d, nil)
	_, err := d.ReclaimExpired(ctx)
	m.must(err)
}

// describe writes down what is in the file.
func (m *fixtureMaker) describe() []byte {
	ctx := context.Background()
	var manifest releasedManifest
	all, err := m.s.Queues(ctx)
	m.must(err)
	for _, st := range all {
		st.OldestAge = 0
		manifest.Stats = append(manifest.Stats, st)
		for _, state := range allStates {
			for r, err := range m.queue(st.Queue).All(ctx, state) {
				m.must(err)
				_, story, err := m.queue(st.Queue).Show(ctx, r.ID)
				m.must(err)
				job := fixtureJob{Record: r, SHA256: hash(r.Payload), Story: story}
				job.Record.Payload = nil
				manifest.Jobs = append(manifest.Jobs, job)
			}
		}
	}
	text, err := json.Marshal(manifest)
	m.must(err)
	return append(bytes.ReplaceAll(text, []byte(`{"Record":`), []byte("\n"+`{"Record":`)), '\n') // a line for each job
}
