package queue_test

import (
	"fmt"
	"time"

	"github.com/localqueue/localqueue/queue"
	"pgregory.net/rapid"
)

func (mm *modelMachine) refs(t *rapid.T, h modelHandle) (refs []queue.Ref) {
	for range rapid.SampledFrom([]int{2, 1, 4, 0}).Draw(t, "deliveries") {
		refs = append(refs, mm.ref(t, h))
	}
	return refs
}

// settleMany: a batch answers each delivery as if it came alone, one after the other.
func (mm *modelMachine) settleMany(t *rapid.T) {
	h := mm.handle(t)
	how, refs := mm.drawSettle(t), mm.refs(t, h)
	got, err := how.many(h.q, refs)
	var want []string
	text := ""
	for _, r := range refs {
		want = append(want, how.model(mm.op(h), r))
		text += ", " + modelRef(r)
	}
	mm.agree(t, fmt.Sprintf("%s %s of many%s", h, how.what, text), modelKinds(got), want, err, "")
}

func (mm *modelMachine) lease(t *rapid.T) {
	h := mm.handle(t)
	d := rapid.SampledFrom([]time.Duration{time.Second, time.Millisecond, 10*time.Second + time.Microsecond, time.Hour}).Draw(t, "lease")
	if rapid.Bool().Draw(t, "extend") {
		r := mm.ref(t, h)
		got, err := h.q.Extend(mm.ctx, r.ID, r.Receipt, d)
		want, kind := mm.op(h).extend(r, d)
		mm.agree(t, fmt.Sprintf("%s extend by %v %s", h, d, modelRef(r)), got, want, err, kind)
		return
	}
	type beat struct {
		Until time.Time
		Err   string
	}
	refs := mm.refs(t, h)
	var got, want []beat
	var held []bool
	beats, err := h.q.Heartbeat(mm.ctx, refs, d)
	for _, b := range beats {
		got = append(got, beat{b.LeaseUntil, modelKind(b.Err)})
	}
	text := ""
	for _, r := range refs {
		until, kind := mm.op(h).beat(r, d)
		want = append(want, beat{until, kind})
		j := mm.m.jobs[r.ID]
		held = append(held, j != nil && j.Queue == h.q.Name() && j.State == queue.Leased && j.Receipt == r.Receipt)
		text += ", " + modelRef(r)
	}
	// A lease renewed twice in a batch is told the later end both times; with one d they are the same.
	mm.agree(t, fmt.Sprintf("%s heartbeat %v%s", h, d, text), got, want, err, "")
	gotHeld, err := h.q.Held(mm.ctx, refs)
	mm.agree(t, fmt.Sprintf("%s held%s", h, text), gotHeld, held, err, "")
}

func (mm *modelMachine) reclaim(t *rapid.T) {
	h := mm.handle(t)
	got, err := h.q.ReclaimExpired(mm.ctx)
	mm.agree(t, h.String()+" reclaim", got, mm.op(h).reclaim(), err, "")
}
