package queue_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/localqueue/localqueue/queue"
	"pgregory.net/rapid"
)

// jobID draws any job that there is, or none.
func (mm *modelMachine) jobID(t *rapid.T, h modelHandle, states ...queue.State) int64 {
	ids := []int64{}
	for _, j := range mm.m.byID(h.q.Name(), states...) {
		ids = append(ids, j.ID)
	}
	if len(ids) == 0 || rapid.IntRange(0, 9).Draw(t, "odd id from 9") == 9 {
		ids = []int64{1, mm.m.last, mm.m.last + 1000, -1}
	}
	return rapid.SampledFrom(ids).Draw(t, "job")
}

// act: what an operator does to one job.
func (mm *modelMachine) act(t *rapid.T) {
	h := mm.handle(t)
	what := strings.TrimSuffix(rapid.SampledFrom([]string{"cancel", "retry", "run", "delete", "retry 2"}).Draw(t, "act"), " 2")
	id := mm.jobID(t, h, map[string][]queue.State{
		"cancel": {queue.Leased, queue.Ready, queue.Delayed, queue.Failed},
		"delete": {queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed},
		"run":    {queue.Delayed, queue.Ready},
		"retry":  {queue.Failed, queue.Acked},
	}[what]...)
	var err error
	var kind string
	switch what {
	case "cancel":
		err, kind = h.q.Cancel(mm.ctx, id), mm.op(h).cancel(id)
	case "delete":
		err, kind = h.q.Delete(mm.ctx, id), mm.op(h).remove(id)
	case "run":
		err, kind = h.q.RunNow(mm.ctx, id), mm.op(h).runNow(id)
	case "retry":
		err, kind = h.q.RetryFailed(mm.ctx, id), mm.op(h).retry(id)
	}
	mm.agree(t, fmt.Sprintf("%s %s job %d", h, what, id), nil, nil, err, kind)
}

// age draws how old jobs must be: a round figure, or just as old as one of them is.
func (mm *modelMachine) age(t *rapid.T, h modelHandle) time.Duration {
	now, ages := h.st.clock.millis(), []time.Duration{0, time.Second, 10 * time.Second, time.Hour}
	for _, j := range mm.m.byID(h.q.Name(), queue.Acked, queue.Failed) {
		if d := now.Sub(j.UpdatedAt); d > 0 {
			ages = append(ages, d)
		}
	}
	return rapid.SampledFrom(ages).Draw(t, "older than")
}

func (mm *modelMachine) retryMany(t *rapid.T) {
	h := mm.handle(t)
	f := queue.RetryFilter{
		ErrorContains: rapid.SampledFrom([]string{"", "oo"}).Draw(t, "contains"), OlderThan: mm.age(t, h),
		Limit: rapid.SampledFrom([]int{0, 1}).Draw(t, "limit"), DryRun: rapid.Bool().Draw(t, "dry"),
	}
	got, err := h.q.RetryMany(mm.ctx, f)
	mm.agree(t, fmt.Sprintf("%s retry many %+v", h, f), got, mm.op(h).retryMany(f), err, "")
}

// clean removes what is finished, or what an operator chooses.
func (mm *modelMachine) clean(t *rapid.T) {
	h := mm.handle(t)
	o := mm.op(h)
	switch rapid.SampledFrom([]string{"retention", "purge", "delete many"}).Draw(t, "clean") {
	case "retention":
		got, err := h.q.ApplyRetention(mm.ctx)
		mm.agree(t, h.String()+" apply retention", got, o.applyRetention(), err, "")
	case "purge":
		opts := queue.PurgeOptions{OlderThan: mm.age(t, h), Failed: rapid.Bool().Draw(t, "failed too")}
		got, err := h.q.Purge(mm.ctx, opts)
		mm.agree(t, fmt.Sprintf("%s purge %+v", h, opts), got, o.purge(opts.OlderThan, opts.Failed), err, "")
	default:
		f := queue.DeleteFilter{
			State:     rapid.SampledFrom([]queue.State{queue.Failed, queue.Acked, queue.Delayed, queue.Ready}).Draw(t, "state"),
			OlderThan: mm.age(t, h), DryRun: rapid.Bool().Draw(t, "dry"),
		}
		got, err := h.q.DeleteMany(mm.ctx, f)
		mm.agree(t, fmt.Sprintf("%s delete many %+v", h, f), got, o.removeMany(f), err, "")
	}
}

func (mm *modelMachine) settings(t *rapid.T) {
	h := mm.handle(t)
	mq := mm.op(h).q
	var err error
	what := rapid.SampledFrom([]string{"resume", "pause", "keep forever", "keep"}).Draw(t, "setting")
	switch what {
	case "resume":
		err, mq.paused = h.q.Resume(mm.ctx), false
	case "pause":
		err, mq.paused = h.q.Pause(mm.ctx), true
	case "keep forever":
		err, mq.keep = h.q.KeepAckedForever(mm.ctx), nil
	default:
		d := mm.age(t, h)
		what += " " + d.String()
		err, mq.keep = h.q.KeepAcked(mm.ctx, d), &d
	}
	mm.agree(t, fmt.Sprintf("%s %s", h, what), nil, nil, err, "")
}

// look pages through a list, and finds a job by its key.
func (mm *modelMachine) look(t *rapid.T) {
	h := mm.handle(t)
	state := rapid.SampledFrom([]queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed}).Draw(t, "state")
	var got []queue.Record
	for after, first := "", true; first || after != ""; first = false {
		page, err := h.q.List(mm.ctx, state, queue.ListOptions{Limit: 2, After: after})
		if err != nil || len(page.Records) > 2 {
			modelFail(t, "list of %s by pages of 2: %d records, error %v", state, len(page.Records), err)
		}
		got, after = append(got, page.Records...), page.Next
	}
	modelSame(t, fmt.Sprintf("%s %s jobs by pages", h, state), got, mm.m.records(h.q.Name(), state))

	key := modelKey(t)
	var newest *queue.Record
	for _, j := range mm.m.byID(h.q.Name(), queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed) {
		if j.JobID == key {
			newest = &j.Record
		}
	}
	kind := ""
	if newest == nil {
		kind = "ErrNotFound"
	}
	rec, _, err := h.q.ShowKey(mm.ctx, key)
	mm.agree(t, fmt.Sprintf("%s show key %q", h, key), rec, newest, err, kind)
}

// badArguments change nothing: the comparison after the step sees to that.
func (mm *modelMachine) badArguments(t *rapid.T) {
	h := mm.handle(t)
	r := mm.ref(t, h)
	name := rapid.SampledFrom([]string{"put", "batch", "nack", "fail", "release", "extend", "heartbeat", "get", "list", "keep", "purge"}).Draw(t, "bad")
	var err error
	switch name {
	case "put":
		bad := []queue.PutOption{queue.Delay(-1), queue.JobID(""), queue.UniqueWhilePending(), queue.MaxRetries(-1), queue.Delay(modelForever + time.Hour),
			queue.At(h.st.clock.now().Add(modelForever + time.Hour)), queue.Header("", "x")}
		_, err = h.q.Put(mm.ctx, nil, bad[rapid.IntRange(0, len(bad)-1).Draw(t, "option")])
	case "batch":
		_, err = h.q.PutMany(mm.ctx, []queue.NewJob{{}, {Options: []queue.PutOption{queue.Delay(-1)}}})
	case "nack":
		bad := []queue.SettleOption{queue.Delay(-1), queue.As(queue.Permanent)}
		err = h.q.Nack(mm.ctx, r.ID, r.Receipt, nil, bad[rapid.IntRange(0, len(bad)-1).Draw(t, "option")])
	case "fail":
		err = h.q.Fail(mm.ctx, r.ID, r.Receipt, nil, queue.As(queue.Cancelled))
	case "release":
		err = h.q.Release(mm.ctx, r.ID, r.Receipt, queue.Delay(-time.Second))
	case "extend":
		_, err = h.q.Extend(mm.ctx, r.ID, r.Receipt, 0)
	case "heartbeat":
		_, err = h.q.Heartbeat(mm.ctx, []queue.Ref{r}, -1)
	case "get":
		_, err = h.q.TryGetMany(mm.ctx, 0)
	case "list":
		_, err = h.q.List(mm.ctx, "gone", queue.ListOptions{})
	case "keep":
		err = h.q.KeepAcked(mm.ctx, -1)
	case "purge":
		_, err = h.q.Purge(mm.ctx, queue.PurgeOptions{OlderThan: -1})
	}
	mm.agree(t, fmt.Sprintf("%s bad %s", h, name), nil, nil, err, "ErrInvalid")
}
