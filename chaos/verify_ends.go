package chaos

import (
	"slices"

	"github.com/localqueue/localqueue/queue"
)

// outcomes are what the history says of a delivery that a call ended; "" is that it says nothing.
var outcomes = map[string]string{opAck: "", opRelease: "", opNack: "nacked", opPanic: "panic", opFail: "failed"}

const expired = "lease_expired"

// endRules: each delivery ended in one way, and the file says which.
func (x *index) endRules(f *findings) {
	for _, c := range x.calls {
		_, settles := outcomes[c.Op]
		switch {
		case c.Forged && c.Answered && c.Err != errLost:
			f.add("%v of %v has another delivery's receipt, and wasn't refused", c, x.stories[c.Jobs[0].ID])
		case settles && !c.Forged:
			x.checkSettle(f, c)
		}
	}
	for _, id := range x.ids {
		s := x.stories[id]
		acks := 0
		for n := int64(1); n <= s.highest; n++ {
			x.checkEnd(f, s, n)
			for _, c := range s.ended(n) {
				if c.Op == opAck {
					acks++
				}
			}
		}
		if acks > 1 {
			f.add("%v was acked %d times", s, acks)
		}
		if s.row != nil {
			s.checkState(f)
		}
	}
}

// checkSettle: an ack or fail is final; a follow-up is there exactly if its ack is.
func (x *index) checkSettle(f *findings, c *call) {
	j := c.Jobs[0]
	s := x.stories[j.ID]
	if c.Answered && c.Err != "" && c.Err != errLost && c.Err != errUnknown && c.Err != errEnded {
		f.add("an answer that settling isn't for: %v of %v", c, s)
	}
	if len(s.claims[j.Delivery]) == 0 {
		f.add("%v settles a delivery of %v that its process never had", c, s)
	}
	final := map[string]queue.State{opAck: queue.Acked, opFail: queue.Failed}[c.Op]
	if c.took() && final != "" && (s.highest > j.Delivery || s.row != nil && (s.row.Delivery != j.Delivery || s.row.State != final)) {
		f.add("%v ended delivery %d of %v, and it went on", c, j.Delivery, s)
	}
	if c.Follow == nil {
		return
	}
	there := len(x.tokens[c.Follow.Token]) > 0
	acked := s.row == nil || s.row.State == queue.Acked && s.row.Delivery == j.Delivery
	only := len(s.settles[j.Delivery]) == 1
	switch {
	case c.took() && !there:
		f.add("%v acked %v, and its follow-up %q isn't there", c, s, c.Follow.Token)
	case there && !acked:
		f.add("%v: the follow-up %q is there, and the ack of %v isn't", c, c.Follow.Token, s)
	case there && c.Answered && !c.took() && !c.open():
		f.add("%v: the ack of %v failed, and its follow-up %q is there", c, s, c.Follow.Token)
	case !there && acked && only && c.open() && s.row != nil:
		f.add("%v: %v was acked by nothing else, and the follow-up %q isn't there", c, s, c.Follow.Token)
	}
}

// checkEnd: a delivery has one end: a call that was told so, the end of its lease, or it goes on. One of a claim that nobody
// was told of may have been given back; one whose receiver died in a settling call may have been settled.
func (x *index) checkEnd(f *findings, s *story, n int64) {
	ends := len(s.ended(n))
	if s.row == nil {
		if ends > 1 {
			f.add("delivery %d of %v ended %d times: %v", n, s, ends, s.settles[n])
		}
		return
	}
	d, kept := s.row.kept(n)
	if d.Outcome == expired {
		ends++
	}
	if s.row.State == queue.Leased && s.row.Delivery == n {
		ends++
	}
	told := len(s.claims[n]) > 0
	if ends > 1 || ends == 0 && told && !s.openEnds(n) && !s.row.forgotten(n) {
		f.add("delivery %d of %v should have one end: its history says %q, %v", n, s, d.Outcome, s.settles[n])
	}
	for _, c := range s.ended(n) {
		if want := outcomes[c.Op]; want != d.Outcome && !s.row.forgotten(n) {
			f.add("delivery %d of %v: the history says %q after %v", n, s, d.Outcome, c)
		}
	}
	if kept && d.Outcome != expired && !slices.ContainsFunc(s.settles[n], func(c *call) bool {
		return outcomes[c.Op] == d.Outcome && (c.took() || c.open())
	}) {
		f.add("delivery %d of %v: the history says %q, and nobody has ended it so: %v", n, s, d.Outcome, s.settles[n])
	}
}

// checkState: how the last delivery ended explains where the job stands; the history has one entry for each failed delivery,
// in their order.
func (s *story) checkState(f *findings) {
	r, n := s.row, s.row.Delivery
	for i, d := range r.story {
		if d.Number < 1 || d.Number > n || i > 0 && d.Number <= r.story[i-1].Number {
			f.add("%v: its history has the delivery numbers %v", s, r.story)
			break
		}
	}
	can := func(op string) bool {
		return s.anyOf(n, op, func(c *call) bool { return c.took() || c.open() })
	}
	d, _ := r.kept(n)
	spent := r.Attempts >= r.MaxAttempts
	why := map[queue.Reason]bool{
		queue.Permanent:        can(opFail) && d.Outcome == "failed",
		queue.RetriesExhausted: spent && can(opNack) && d.Outcome == "nacked",
		queue.Panicked:         spent && can(opPanic) && d.Outcome == "panic",
		queue.LeaseExpired:     spent && d.Outcome == expired,
	}
	switch {
	case r.State == queue.Acked && !can(opAck):
		f.add("%v: nobody has acked its last delivery: %v", s, s.settles[n])
	case r.State == queue.Failed && !why[r.Reason]:
		f.add("%v failed as %q, and its last delivery ended by %q: %v", s, r.Reason, d.Outcome, s.settles[n])
	case spent && (d.Outcome == "nacked" || d.Outcome == expired || d.Outcome == "panic") && r.State != queue.Failed:
		f.add("%v: its last delivery ended by %q, and it isn't in the dead letters", s, d.Outcome)
	}
}
