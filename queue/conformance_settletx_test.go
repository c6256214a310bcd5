package queue_test

import (
	"testing"

	"github.com/localqueue/localqueue/queue"
)

var settleTxCases = []conformanceCase{
	{name: "Rule24_AnEffectAndItsAckCommitTogether", run: func(t *testing.T, w *world) {
		w.raw("CREATE TABLE effects (n INTEGER)")
		for _, foreign := range []bool{false, true} {
			w.raw("DELETE FROM effects")
			w.mustPut("x")
			j := w.mustGet()
			steps := []wireRequest{sqlStep("INSERT INTO effects VALUES (1)"), w.settleStep("ack", j, nil)}
			w.ok(w.run("tx", wireRequest{Steps: steps, Foreign: foreign, Undo: true}).Err.error)
			w.counts(queue.Stats{Processing: 1})
			w.equal("effects", 0, w.number("SELECT count(*) FROM effects"))
			w.ok(w.run("tx", wireRequest{Steps: steps, Foreign: foreign}).Err.error)
			again := w.run("tx", wireRequest{Steps: steps, Foreign: foreign})
			w.lost(again.Err.error, queue.LossSettled)
			w.equal("effects", 1, w.number("SELECT count(*) FROM effects"))
			w.counts(queue.Stats{Acked: 1})
			w.ok(second(w.purge(0, false)))
		}
	}},
	{name: "Rule24_EverySettleWorksInATransaction", run: func(t *testing.T, w *world) {
		for _, foreign := range []bool{false, true} {
			for _, c := range []struct {
				op      string
				want    queue.State
				outcome string
			}{{"nack", queue.Ready, "nacked"}, {"fail", queue.Failed, "failed"}, {"release", queue.Ready, ""}} {
				id := w.mustPut(c.op, deliveries(2))
				j := w.mustGet()
				step := w.settleStep(c.op, j, nil)
				if c.op != "release" {
					step = w.settleStep(c.op, j, errBoom)
				}
				w.ok(w.run("tx", wireRequest{Steps: []wireRequest{step}, Foreign: foreign, Undo: true}).Err.error)
				w.equal("undone", queue.Leased, w.mustShow(id).State)
				w.equal("undone history", 0, len(w.history(id)))
				w.ok(w.run("tx", wireRequest{Steps: []wireRequest{step}, Foreign: foreign}).Err.error)
				w.equal("state", c.want, w.mustShow(id).State)
				if c.outcome != "" {
					w.equal("outcome", c.outcome, w.entries(id, 1)[0].Outcome)
				}
				w.ok(w.delete(id))
			}
		}
	}},
	{name: "Rule25_AnAckAndItsFollowUpsCommitTogether", run: func(t *testing.T, w *world) {
		next := w.on("next")
		w.raw("CREATE TABLE effects (n INTEGER)")
		id := w.mustPut("x")
		j := w.mustGet()
		err := w.ackWith(j, next.putStep("y"), sqlStep("INSERT INTO nowhere VALUES (1)"))
		w.says(err, "nowhere")
		w.equal("undone", queue.Leased, w.mustShow(id).State)
		next.mustBeEmpty()
		w.ok(w.ackWith(j, next.putStep("y"), next.putManyStep(spec("z"), spec("zz")), w.putStep("again"), sqlStep("INSERT INTO effects VALUES (1)")))
		w.equal("state", queue.Acked, w.mustShow(id).State)
		w.equal("follow-ups", []string{"y", "z", "zz"}, next.drain())
		w.equal("on the same queue", []string{"again"}, w.drain())
		w.equal("effects", 1, w.number("SELECT count(*) FROM effects"))
	}},
	{name: "Rule25_ALostLeaseStoresNoFollowUps", run: func(t *testing.T, w *world) {
		w.mustPut("x")
		j := w.options(lease(minute)).mustGet()
		w.advance(minute)
		w.lost(w.ackWith(j, w.on("next").putStep("y")), queue.LossExpired)
		w.on("next").mustBeEmpty()
		w.counts(queue.Stats{Processing: 1, Expired: 1})
	}},
}
