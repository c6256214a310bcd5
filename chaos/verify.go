package chaos

import (
	"github.com/localqueue/localqueue/queue"
)

// violations are the rules that journals and file break, each told with the job or call it is about.
func (w *world) violations() []string {
	f := findings(w.findings)
	x := w.index()
	x.putRules(&f)
	x.deliveryRules(&f)
	x.endRules(&f)
	x.fileRules(&f)
	return f
}

// fileRules: what must hold of the file by itself.
func (x *index) fileRules(f *findings) {
	for _, c := range x.calls {
		if c.Op == opNote {
			f.add("%s saw: %s", c.Proc, c.Err)
		}
	}
	counted := map[string]map[queue.State]int64{}
	for _, id := range x.ids {
		s := x.stories[id]
		r := s.row
		if r == nil {
			continue
		}
		if counted[r.Queue] == nil {
			counted[r.Queue] = map[queue.State]int64{}
		}
		counted[r.Queue][r.State]++
		if end := r.LeaseUntil; r.State == queue.Leased && (end.IsZero() || end.After(x.now.Add(x.lease)) || r.Receipt == "") {
			f.add("%v is leased with receipt %q until %v: it must end by %v", s, r.Receipt, end, x.now.Add(x.lease))
		}
		if x.drained && r.State != queue.Acked && r.State != queue.Failed {
			f.add("%v has come to no end", s)
		}
	}
	for _, st := range x.stats {
		n := counted[st.Queue]
		delete(counted, st.Queue)
		says := [4]int64{st.Ready, st.Processing, st.Acked, st.Failed}
		if are := [4]int64{n[queue.Ready] + n[queue.Delayed], n[queue.Leased], n[queue.Acked], n[queue.Failed]}; says != are {
			f.add("queue %s: stats say %v are ready, processing, acked, failed; of the rows it is %v", st.Queue, says, are)
		}
	}
	for name, n := range counted {
		f.add("queue %s has rows, and no stats: %v", name, n)
	}
}
