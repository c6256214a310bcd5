package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/localqueue/localqueue/queue"
	"pgregory.net/rapid"
)

// actions are what the machine can do. Common operations are drawn more often, so that jobs get somewhere; shrinking
// prefers those that come first.
func (mm *modelMachine) actions() map[string]func(*rapid.T) {
	named := map[string]func(*rapid.T){"": mm.compare} // before and after each
	for i, a := range []struct {
		name   string
		weight int
		do     func(*rapid.T)
	}{
		{"put", 2, mm.put},
		{"put a batch", 1, mm.putMany},
		{"get", 4, mm.get},
		{"let time pass", 2, mm.moveClock},
		{"settle", 5, mm.settle},
		{"lease", 1, mm.lease},
		{"settle many", 1, mm.settleMany},
		{"reclaim", 1, mm.reclaim},
		{"act", 2, mm.act},
		{"retry many", 1, mm.retryMany},
		{"clean", 1, mm.clean},
		{"set", 1, mm.settings},
		{"look", 1, mm.look},
		{"ack with a put", 1, mm.ackWith},
		{"transaction", 1, mm.tx},
		{"bad arguments", 1, mm.badArguments},
		{"reopen", 1, mm.reopen},
		{"step a clock", 1, mm.stepClock},
	} {
		for n := range a.weight {
			named[fmt.Sprintf("%c%d %s", 'a'+i, n, a.name)] = a.do // drawn in the order of the names
		}
	}
	return named
}

func (mm *modelMachine) drawPut(t *rapid.T, h modelHandle) modelPut {
	p := modelPut{payload: []byte("x"), retries: -1}
	switch rapid.SampledFrom([]string{"plain", "delayed", "at", "keyed", "keyed while pending", "keyed while pending 2", "all"}).Draw(t, "kind") {
	case "delayed":
		p.delay = modelDelay(t)
	case "at":
		p.at = h.st.clock.millis().Add(rapid.SampledFrom([]time.Duration{-time.Hour, time.Second, time.Hour}).Draw(t, "at"))
	case "keyed":
		p.key = modelKey(t)
	case "keyed while pending", "keyed while pending 2":
		p.key, p.pending = modelKey(t), true
	case "all":
		p.payload = []byte(strings.Repeat("y", rapid.SampledFrom([]int{0, 2000, 2001}).Draw(t, "size")))
		p.key, p.pending, p.delay = modelKey(t), rapid.Bool().Draw(t, "pending"), modelDelay(t)
		p.priority = rapid.SampledFrom([]int16{0, 1, -1, 32767, -32768}).Draw(t, "priority")
		p.retries = rapid.SampledFrom([]int{-1, 0, 3}).Draw(t, "retries")
		p.headers = rapid.SampledFrom([]map[string]string{nil, {"trace": "1\n"}}).Draw(t, "headers")
	}
	return p
}

func modelKey(t *rapid.T) string { return rapid.SampledFrom([]string{"k", "l\"\\"}).Draw(t, "key") }

func modelDelay(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, 0, 0, 0, 300 * time.Microsecond, time.Second, 5 * time.Second, time.Hour}).Draw(t, "delay")
}

func (p modelPut) options() (opts []queue.PutOption) {
	if p.key != "" {
		opts = append(opts, queue.JobID(p.key))
	}
	if p.pending {
		opts = append(opts, queue.UniqueWhilePending())
	}
	if p.delay > 0 {
		opts = append(opts, queue.Delay(p.delay))
	}
	if !p.at.IsZero() {
		opts = append(opts, queue.At(p.at))
	}
	if p.priority != 0 {
		opts = append(opts, queue.Priority(p.priority))
	}
	if p.retries >= 0 {
		opts = append(opts, queue.MaxRetries(p.retries))
	}
	for name, value := range p.headers {
		opts = append(opts, queue.Header(name, value))
	}
	return opts
}

func (p modelPut) String() string {
	text := fmt.Sprintf("%d bytes", len(p.payload))
	if p.key != "" {
		text += fmt.Sprintf(" key=%q pending=%v", p.key, p.pending)
	}
	if p.delay > 0 {
		text += fmt.Sprintf(" delay=%v", p.delay)
	}
	if !p.at.IsZero() {
		text += fmt.Sprintf(" at=%v", p.at)
	}
	if p.priority != 0 || p.retries >= 0 {
		text += fmt.Sprintf(" priority=%d retries=%d", p.priority, p.retries)
	}
	return text
}

func (mm *modelMachine) put(t *rapid.T) {
	h := mm.handle(t)
	p := mm.drawPut(t, h)
	call := h.q.Put
	if !mm.op(h).fits([]modelPut{p}) { // Put would wait for room
		call = h.q.TryPut
	}
	ctx, cancel := context.WithTimeout(mm.ctx, 10*time.Second)
	defer cancel()
	got, err := call(ctx, p.payload, p.options()...)
	want, kind := mm.op(h).put(p, got)
	mm.agree(t, fmt.Sprintf("%s put %v", h, p), got, want, err, kind)
}

func (mm *modelMachine) drawBatch(t *rapid.T, h modelHandle) (batch []modelPut, jobs []queue.NewJob) {
	for range rapid.SampledFrom([]int{2, 3, 0, 7}).Draw(t, "jobs") {
		p := mm.drawPut(t, h)
		batch = append(batch, p)
		jobs = append(jobs, queue.NewJob{Payload: p.payload, Options: p.options()})
	}
	return batch, jobs
}

func (mm *modelMachine) putMany(t *rapid.T) {
	h := mm.handle(t)
	batch, jobs := mm.drawBatch(t, h)
	o := mm.op(h)
	call := h.q.PutMany // which fails at once with what can never fit
	if !o.fits(batch) && o.fresh(batch) <= o.q.limit {
		call = h.q.TryPutMany
	}
	ctx, cancel := context.WithTimeout(mm.ctx, 10*time.Second)
	defer cancel()
	got, err := call(ctx, jobs)
	want, kind := o.putMany(batch, got)
	mm.agree(t, fmt.Sprintf("%s put of a batch %v", h, batch), got, want, err, kind)
}

func (mm *modelMachine) get(t *rapid.T) {
	h := mm.handle(t)
	n := rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "jobs")
	var got []*queue.Job
	var err error
	if n == 1 {
		var job *queue.Job
		if job, err = h.q.TryGet(mm.ctx); job != nil {
			got = []*queue.Job{job}
		}
	} else {
		got, err = h.q.TryGetMany(mm.ctx, n)
	}
	want, kind := mm.op(h).claim(n, got)
	mm.agree(t, fmt.Sprintf("%s get %d", h, n), got, want, err, kind)
	for _, j := range got {
		mm.granted = append(mm.granted, j.Ref())
	}
}

// moveClock lets time pass: a while, or just until something ends or falls due.
func (mm *modelMachine) moveClock(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{time.Second, time.Millisecond, 400 * time.Microsecond, 3 * time.Second, 70 * time.Second, 0, 0, 0, 0}).Draw(t, "time passes")
	whose := rapid.SampledFrom([]string{"ab", "a", "b"}).Draw(t, "for")
	if next := mm.nextTimes(mm.stores[whose[0]-'a'].clock.millis()); d == 0 && len(next) > 0 {
		d = next[rapid.IntRange(0, len(next)-1).Draw(t, "until")]
	}
	for _, name := range whose {
		mm.stores[name-'a'].clock.advance(d)
	}
	t.Logf("time passes: %v; now %s, %s", d, mm.stores[0].clock.now().UTC().Format("15:04:05.000"), mm.stores[1].clock.now().UTC().Format("15:04:05.000"))
}

// nextTimes are how long it is until leases end and jobs fall due.
func (mm *modelMachine) nextTimes(now time.Time) (next []time.Duration) {
	for _, mq := range mm.m.queues {
		for _, j := range mm.m.byID(mq.name, queue.Leased) {
			next = append(next, j.LeaseUntil.Sub(now))
		}
		for _, j := range mm.m.byID(mq.name, queue.Delayed) {
			next = append(next, j.AvailableAt.Sub(now))
		}
	}
	return slices.DeleteFunc(next, func(d time.Duration) bool { return d <= 0 })
}

func (mm *modelMachine) stepClock(t *rapid.T) {
	st := mm.store(t, "clock of")
	d := rapid.SampledFrom([]time.Duration{-time.Hour, time.Hour, -time.Second}).Draw(t, "steps by")
	st.clock.advance(d)
	t.Logf("the clock of %s steps by %v", st.name, d)
}

// ref draws a delivery: one that holds a job of the queue, any that was ever granted, a wrong receipt for a job that is
// held, or one that never was.
func (mm *modelMachine) ref(t *rapid.T, h modelHandle) queue.Ref {
	wrong := []string{"1-" + strings.Repeat("0", 32), "99-" + strings.Repeat("0", 32), "\"';\x00", ""}
	for _, r := range mm.granted {
		wrong = append(wrong, r.Receipt)
	}
	var held, stolen, odd []queue.Ref
	for i, j := range mm.m.byID(h.q.Name(), queue.Leased) {
		held = append(held, queue.Ref{ID: j.ID, Receipt: j.Receipt})
		stolen = append(stolen, queue.Ref{ID: j.ID, Receipt: wrong[i%len(wrong)]}, queue.Ref{ID: j.ID, Receipt: wrong[len(wrong)-1-i%len(wrong)]})
	}
	for _, id := range []int64{1, mm.m.last + 1000, 0, -1} {
		odd = append(odd, queue.Ref{ID: id, Receipt: wrong[0]}, queue.Ref{ID: id, Receipt: wrong[2]}, queue.Ref{ID: id})
	}
	choices := [][]queue.Ref{odd}
	if len(mm.granted) > 0 {
		choices = append([][]queue.Ref{mm.granted, mm.granted}, choices...)
	}
	if len(held) > 0 {
		choices = append(append(slices.Repeat([][]queue.Ref{held}, 7), stolen, stolen), choices...)
	}
	from := rapid.IntRange(0, len(choices)-1).Draw(t, "kind of delivery")
	return choices[from][rapid.IntRange(0, len(choices[from])-1).Draw(t, "delivery")]
}

// modelCauses: none keeps the error of the delivery before.
var modelCauses = map[string]error{
	"none":  nil,
	"boom":  errors.New("boom"),
	"empty": errors.New(""),
	"long":  errors.New("long" + strings.Repeat("é\xff", 4<<10)),
}

func modelCause(t *rapid.T) error {
	return modelCauses[rapid.SampledFrom([]string{"none", "boom", "empty", "long"}).Draw(t, "error")]
}

// modelSettle is a way to settle: on the engine, and on the model.
type modelSettle struct {
	what   string
	engine func(q *queue.Queue, r queue.Ref) error
	many   func(q *queue.Queue, refs []queue.Ref) ([]error, error)
	inTx   func(q *queue.Queue, tx queue.DBTX, r queue.Ref) error
	model  func(o modelOp, r queue.Ref) string
}

func (mm *modelMachine) drawSettle(t *rapid.T) modelSettle {
	ctx := mm.ctx
	switch rapid.SampledFrom([]string{"ack", "nack", "nack 2", "fail", "release"}).Draw(t, "settle") {
	case "nack", "nack 2":
		cause, delay, panicked := modelCause(t), modelDelay(t), rapid.Bool().Draw(t, "panic")
		opts := []queue.SettleOption{queue.Delay(delay)}
		if panicked {
			opts = append(opts, queue.As(queue.Panicked))
		}
		return modelSettle{
			what:   fmt.Sprintf("nack delay=%v panic=%v %.10q", delay, panicked, fmt.Sprint(cause)),
			engine: func(q *queue.Queue, r queue.Ref) error { return q.Nack(ctx, r.ID, r.Receipt, cause, opts...) },
			many:   func(q *queue.Queue, refs []queue.Ref) ([]error, error) { return q.NackMany(ctx, refs, cause, opts...) },
			inTx: func(q *queue.Queue, tx queue.DBTX, r queue.Ref) error {
				return q.NackTx(ctx, tx, r.ID, r.Receipt, cause, opts...)
			},
			model: func(o modelOp, r queue.Ref) string { return o.nack(r, cause, delay, panicked) },
		}
	case "fail":
		cause, reason := modelCause(t), rapid.SampledFrom([]queue.Reason{queue.Permanent, queue.InvalidPayload, queue.Panicked}).Draw(t, "as")
		return modelSettle{
			what:   fmt.Sprintf("fail as %s %.10q", reason, fmt.Sprint(cause)),
			engine: func(q *queue.Queue, r queue.Ref) error { return q.Fail(ctx, r.ID, r.Receipt, cause, queue.As(reason)) },
			many: func(q *queue.Queue, refs []queue.Ref) ([]error, error) {
				return q.FailMany(ctx, refs, cause, queue.As(reason))
			},
			inTx: func(q *queue.Queue, tx queue.DBTX, r queue.Ref) error {
				return q.FailTx(ctx, tx, r.ID, r.Receipt, cause, queue.As(reason))
			},
			model: func(o modelOp, r queue.Ref) string { return o.fail(r, cause, reason) },
		}
	case "release":
		delay := modelDelay(t)
		return modelSettle{
			what:   fmt.Sprintf("release delay=%v", delay),
			engine: func(q *queue.Queue, r queue.Ref) error { return q.Release(ctx, r.ID, r.Receipt, queue.Delay(delay)) },
			many: func(q *queue.Queue, refs []queue.Ref) ([]error, error) {
				return q.ReleaseMany(ctx, refs, queue.Delay(delay))
			},
			inTx: func(q *queue.Queue, tx queue.DBTX, r queue.Ref) error {
				return q.ReleaseTx(ctx, tx, r.ID, r.Receipt, queue.Delay(delay))
			},
			model: func(o modelOp, r queue.Ref) string { return o.release(r, delay) },
		}
	}
	return modelSettle{
		what:   "ack",
		engine: func(q *queue.Queue, r queue.Ref) error { return q.Ack(ctx, r.ID, r.Receipt) },
		many:   func(q *queue.Queue, refs []queue.Ref) ([]error, error) { return q.AckMany(ctx, refs) },
		inTx:   func(q *queue.Queue, tx queue.DBTX, r queue.Ref) error { return q.AckTx(ctx, tx, r.ID, r.Receipt) },
		model:  func(o modelOp, r queue.Ref) string { return o.ack(r) },
	}
}

func modelRef(r queue.Ref) string { return fmt.Sprintf("job %d with %.6q", r.ID, r.Receipt) }

func (mm *modelMachine) settle(t *rapid.T) {
	h := mm.handle(t)
	how, r := mm.drawSettle(t), mm.ref(t, h)
	err := how.engine(h.q, r)
	mm.agree(t, fmt.Sprintf("%s %s %s", h, how.what, modelRef(r)), nil, nil, err, how.model(mm.op(h), r))
}
