package chaos

import (
	"maps"
	"slices"

	"github.com/localqueue/localqueue/queue"
)

// putRules: what was answered is there, what wasn't is there at most once, and nothing else is.
func (x *index) putRules(f *findings) {
	keys := map[[2]string]map[int64]bool{}
	for _, c := range x.calls {
		if c.Op == opPut {
			x.checkPut(f, c)
		}
	}
	for _, tries := range x.imports {
		x.checkImport(f, tries)
	}
	for token, ids := range x.tokens {
		switch puts := x.puts[token]; {
		case len(puts) != 1:
			f.add("%d puts have the token %q of the jobs %v: %v", len(puts), token, slices.Sorted(maps.Keys(ids)), puts)
		case len(ids) != 1:
			f.add("the one put of %q has made the jobs %v: %v", token, slices.Sorted(maps.Keys(ids)), puts[0])
		}
	}
	for _, id := range x.ids {
		s := x.stories[id]
		if s.token == "" {
			f.add("%v is told of by %v %v, and nobody knows what it was", s, s.claims, s.settles)
		}
		if s.row == nil && (!x.purged[s.queue] || !s.mayBeAcked()) {
			f.add("%v of queue %q is gone without an ack and a purge; put by %v", s, s.queue, s.put)
		}
		if s.key != "" {
			at := [2]string{s.queue, s.key}
			if keys[at] == nil {
				keys[at] = map[int64]bool{}
			}
			keys[at][id] = true
		}
	}
	for at, ids := range keys {
		if len(ids) > 1 && !x.purged[at[0]] {
			f.add("key %q of queue %s is one job, and has been seen on %v", at[1], at[0], slices.Sorted(maps.Keys(ids)))
		}
	}
}

// checkPut: a put that was answered has made its jobs, or was told of those that had its keys; a batch is whole or absent.
func (x *index) checkPut(f *findings, c *call) {
	there, fresh := 0, 0
	for _, j := range c.Jobs {
		if j.Dup {
			continue
		}
		fresh++
		ids := x.tokens[j.Token]
		if len(ids) > 0 {
			there++
		}
		if !c.took() {
			continue
		}
		s := x.stories[j.ID]
		if s.token != j.Token || !ids[j.ID] {
			f.add("%v was given %v for %q", c, s, j.Token)
		}
		if r := s.row; r != nil && (r.Queue != c.Queue || r.JobID != j.Key) {
			f.add("%v put %q with key %q; the file has queue %s, key %q", c, j.Token, j.Key, r.Queue, r.JobID)
		}
	}
	if there != 0 && there != fresh {
		f.add("%v: %d of its %d jobs are there", c, there, fresh)
	}
	if c.Answered && !c.took() && !c.open() && there > 0 {
		f.add("%v: an error says that nothing was stored, and %d jobs are there", c, there)
	}
	if c.Answered && c.Err != "" && c.Err != errEnded && c.Err != errUnknown {
		f.add("an answer that a put isn't for: %v", c)
	}
}

// checkImport: a batch of an import is whole or absent, and is there if any process was told so. Only one can have been.
func (x *index) checkImport(f *findings, tries []*call) {
	there, took, may := 0, 0, false
	for _, j := range tries[0].Jobs {
		if len(x.tokens[j.Token]) > 0 {
			there++
		}
	}
	for _, c := range tries {
		if c.took() {
			took++
		}
		may = may || c.took() || c.open()
	}
	all := len(tries[0].Jobs)
	if took > 1 || there != 0 && there != all || took == 1 && there == 0 || there > 0 && !may {
		f.add("%d of %d jobs are there, and %d processes were told that they had brought them in: %v", there, all, took, tries)
	}
}

// tally counts what became of the calls that a process had no answer to when it died.
type tally struct {
	Puts, PutsThere    int
	Settles, EndsThere int
}

// unanswered sorts the open calls of killed processes by how they were killed.
func (w *world) unanswered(killed map[string]string) map[string]tally {
	x := w.index()
	sums := map[string]tally{}
	for _, c := range w.calls {
		how, ok := killed[c.Proc]
		if !ok || c.Answered {
			continue
		}
		t := sums[how]
		switch c.Op {
		case opPut:
			t.Puts++
			if slices.ContainsFunc(c.Jobs, func(j job) bool { return len(x.tokens[j.Token]) > 0 }) {
				t.PutsThere++
			}
		case opAck:
			t.Settles++
			if r := x.story(c.Jobs[0].ID).row; r != nil && r.State == queue.Acked && r.Delivery == c.Jobs[0].Delivery {
				t.EndsThere++
			}
		}
		sums[how] = t
	}
	return sums
}
