package queue_test

import (
	"context"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// lane is one queue of a world, with options. Its operations are those of a queue.Queue; each goes to the next Store
// (or always to the same one), and is bounded by the suite's patience.
type lane struct {
	w     *world
	queue bin
	with  queueOpts
	at    int // the Store; anyPeer: the next one
}

const anyPeer = -1

// opt is an option of a lane.
type opt func(*queueOpts)

func lease(d time.Duration) opt { return func(o *queueOpts) { o.Lease = d } }
func retries(n int) opt         { return func(o *queueOpts) { o.MaxRetries = &n } }
func atMost(n int) opt          { return func(o *queueOpts) { o.MaxPending = n } }
func maxBytes(n int) opt        { return func(o *queueOpts) { o.MaxPayload = n } }

func (l *lane) options(opts ...opt) *lane {
	other := *l
	for _, o := range opts {
		o(&other.with)
	}
	return &other
}

// peer is a lane of which every operation goes to the same Store; any number will do.
func (l *lane) peer(i int) *lane {
	other := *l
	other.at = i % len(l.w.peers)
	return &other
}

func (l *lane) do(ctx context.Context, op string, r wireRequest) wireResponse {
	r.Op, r.Queue, r.With = op, l.queue, l.with
	at := l.at
	if at == anyPeer {
		at = int(l.w.turns.Add(1)-1) % len(l.w.peers)
	}
	return l.w.peers[at].call(ctx, r)
}

func (l *lane) run(op string, r wireRequest) wireResponse {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return l.do(ctx, op, r)
}

// jobOpt describes a job to put.
type jobOpt func(*jobSpec)

func key(k string) jobOpt            { return func(j *jobSpec) { j.Key = (*bin)(&k) } }
func whilePending() jobOpt           { return func(j *jobSpec) { j.Pending = true } }
func delayed(d time.Duration) jobOpt { return func(j *jobSpec) { j.Delay = &d } }
func due(at time.Time) jobOpt        { return func(j *jobSpec) { j.At = &at } }
func priority(p int16) jobOpt        { return func(j *jobSpec) { j.Priority = &p } }
func deliveries(n int) jobOpt        { n--; return func(j *jobSpec) { j.MaxRetries = &n } }
func header(name, value string) jobOpt {
	return func(j *jobSpec) { j.Headers = append(j.Headers, [2]bin{bin(name), bin(value)}) }
}

func spec(payload string, opts ...jobOpt) jobSpec {
	j := jobSpec{Payload: []byte(payload)}
	for _, o := range opts {
		o(&j)
	}
	return j
}

func onePut(r wireResponse) (queue.PutResult, error) {
	if len(r.Puts) == 0 {
		return queue.PutResult{}, r.Err.error
	}
	return r.Puts[0], r.Err.error
}

func (l *lane) put(payload string, opts ...jobOpt) (queue.PutResult, error) {
	return onePut(l.run("put", wireRequest{Jobs: []jobSpec{spec(payload, opts...)}}))
}

func (l *lane) putUntil(ctx context.Context, payload string, opts ...jobOpt) (queue.PutResult, error) {
	return onePut(l.do(ctx, "put", wireRequest{Jobs: []jobSpec{spec(payload, opts...)}}))
}

func (l *lane) tryPut(payload string, opts ...jobOpt) (queue.PutResult, error) {
	return onePut(l.run("tryPut", wireRequest{Jobs: []jobSpec{spec(payload, opts...)}}))
}

func (l *lane) checkPut(payload string, opts ...jobOpt) error {
	return l.run("checkPut", wireRequest{Jobs: []jobSpec{spec(payload, opts...)}}).Err.error
}

func (l *lane) putMany(jobs ...jobSpec) ([]queue.PutResult, error) {
	r := l.run("putMany", wireRequest{Jobs: jobs})
	return r.Puts, r.Err.error
}

func (l *lane) tryPutMany(jobs ...jobSpec) ([]queue.PutResult, error) {
	r := l.run("tryPutMany", wireRequest{Jobs: jobs})
	return r.Puts, r.Err.error
}

// mustPut puts a job that must be new, and returns its id.
func (l *lane) mustPut(payload string, opts ...jobOpt) int64 {
	l.w.t.Helper()
	res, err := l.put(payload, opts...)
	l.w.ok(err)
	if res.Duplicate {
		l.w.t.Fatalf("the put of %q is a duplicate of job %d", payload, res.ID)
	}
	return res.ID
}

func oneJob(r wireResponse) (*queue.Job, error) {
	if len(r.Jobs) == 0 {
		return nil, r.Err.error
	}
	return r.Jobs[0], r.Err.error
}

func (l *lane) get(ctx context.Context) (*queue.Job, error) {
	return oneJob(l.do(ctx, "get", wireRequest{}))
}
func (l *lane) tryGet() (*queue.Job, error) { return oneJob(l.run("tryGet", wireRequest{})) }

func (l *lane) getMany(ctx context.Context, n int) ([]*queue.Job, error) {
	r := l.do(ctx, "getMany", wireRequest{N: n})
	return r.Jobs, r.Err.error
}

func (l *lane) tryGetMany(n int) ([]*queue.Job, error) {
	r := l.run("tryGetMany", wireRequest{N: n})
	return r.Jobs, r.Err.error
}

// mustGet claims a job that must be there.
func (l *lane) mustGet() *queue.Job {
	l.w.t.Helper()
	j, err := l.tryGet()
	l.w.ok(err)
	return j
}

func (l *lane) mustBeEmpty() {
	l.w.t.Helper()
	j, err := l.tryGet()
	if err == nil {
		l.w.t.Fatalf("got job %d, want none", j.ID)
	}
	l.w.is(err, queue.ErrEmpty)
}

// drain claims and acks all that is claimable, and returns the payloads in the order they came.
func (l *lane) drain() (payloads []string) {
	l.w.t.Helper()
	for len(payloads) < 10000 {
		j, err := l.tryGet()
		if err != nil {
			l.w.is(err, queue.ErrEmpty)
			return payloads
		}
		l.w.ok(l.ack(j))
		payloads = append(payloads, string(j.Payload))
	}
	l.w.t.Fatal("the queue doesn't get empty")
	return nil
}

func (l *lane) stats() (queue.Stats, error) {
	r := l.run("stats", wireRequest{})
	if len(r.Stats) == 0 {
		return queue.Stats{}, r.Err.error
	}
	return r.Stats[0], r.Err.error
}

// counts compares the queue's Stats; the age of the oldest is left out unless it is wanted.
func (l *lane) counts(want queue.Stats) {
	l.w.t.Helper()
	got, err := l.stats()
	l.w.ok(err)
	want.Queue = string(l.queue)
	if want.OldestAge == 0 {
		got.OldestAge = 0
	}
	l.w.equal("stats", want, got)
}
