package powercut

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

// Note is what the client writes into the record: one before each operation and one when it has its answer.
type Note struct {
	Op    string // the operation's name, unique
	Verb  Verb   // before
	Moves []Move `json:",omitempty"` // with the answer: what it did, as far as it succeeded
	Done  bool   // this is the answer
}

// Verb is a kind of operation.
type Verb string

// The verbs of the workload.
const (
	Put     Verb = "put"
	Claim   Verb = "claim"
	Ack     Verb = "ack"
	AckWith Verb = "ack with"
	Nack    Verb = "nack"
	Fail    Verb = "fail"
	Release Verb = "release"
	Retry   Verb = "retry"
	Cancel  Verb = "cancel"
	Delete  Verb = "delete"
	Purge   Verb = "purge"
	Set     Verb = "set" // a pause, its end, or the retention
)

// kept tells whether a power cut may not take an operation that was answered: the table of docs/guarantees.md.
func (v Verb) kept(mode queue.Durability) bool {
	switch mode {
	case queue.Full:
		return true
	case queue.Balanced:
		return v != Claim && v != Ack && v != Release
	}
	return false
}

// Status is what can be seen of a job. The zero value is that of a job that isn't there. A queue's settings are told of as if
// they were a job: whether it is paused, and the time for which acked jobs are kept.
type Status struct {
	State    queue.State
	Delivery int64
}

// Move is one job's step to its next status. A job's moves are told by several goroutines; Delivery and Phase are their order.
type Move struct {
	Job   string
	To    Status
	At    int64 // the delivery it belongs to; 0: the put
	Phase int   // within the delivery, from the claim (0) and the settling (1) on
}

// operation is one of the client's, by the places of its notes in the record.
type operation struct {
	name            string
	verb            Verb
	asked, answered int
	moves           []Move
}

// chapter is one move of a job and the operation that made it.
type chapter struct {
	Move
	op *operation
}

// Story is what the client was told, and when.
type Story struct {
	jobs    map[string][]chapter // each in its order
	answers []int                // the places of the answers in the record
}

// ReadStory collects the notes of a record.
func ReadStory(records []preload.Record) (*Story, error) {
	s := &Story{jobs: map[string][]chapter{}}
	ops := map[string]*operation{}
	for at, r := range records {
		if r.Kind != preload.Mark {
			continue
		}
		var n Note
		if err := json.Unmarshal(r.Data, &n); err != nil {
			return nil, fmt.Errorf("note at record %d: %w", at, err)
		}
		if !n.Done {
			ops[n.Op] = &operation{name: n.Op, verb: n.Verb, asked: at, answered: math.MaxInt}
			continue
		}
		op := ops[n.Op]
		op.answered, op.moves = at, n.Moves
		s.answers = append(s.answers, at)
		for _, m := range n.Moves {
			s.jobs[m.Job] = append(s.jobs[m.Job], chapter{m, op})
		}
	}
	for _, chapters := range s.jobs {
		slices.SortFunc(chapters, func(a, b chapter) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Phase, b.Phase)) })
	}
	return s, nil
}

// Report is what became of a client's operations in one image.
type Report struct {
	Promised   int // answered operations that the mode keeps
	Lost       int // answered operations that are not there, as far as the mode lets a power cut take them
	Violations []string
}

// Compare holds what is in an image against what the client was told before the power was cut, at a place of the record:
//
//   - each job is as it was at some time before the cut;
//   - what the mode keeps of the answered operations is there;
//   - no operation is there without those that were answered before it was asked for;
//   - of an operation on several jobs all moves are there, or none. A purge goes in steps.
func (s *Story) Compare(mode queue.Durability, cut int, seen map[string]Status) (rep Report) {
	bad := func(format string, args ...any) {
		rep.Violations = append(rep.Violations, fmt.Sprintf(format, args...))
	}
	for job := range seen {
		if len(s.jobs[job]) == 0 {
			bad("job %s was never put", job)
		}
	}
	var last *operation // of those that are there for certain, the one asked for last
	answered, there, missing := map[*operation]bool{}, map[*operation]string{}, map[*operation]string{}
	for job, chapters := range s.jobs {
		past := chapters[:before(chapters, cut)]
		least, most := -1, -1 // how many chapters are there; the same status may come twice
		for i := range len(past) + 1 {
			var was Status
			if i > 0 {
				was = past[i-1].To
			}
			if was == seen[job] {
				if most = i; least < 0 {
					least = i
				}
			}
		}
		if least < 0 {
			bad("job %s is %v, which it never was: %v", job, seen[job], past)
			continue
		}
		for i, c := range past {
			if c.op.answered < cut {
				answered[c.op] = true
			}
			if i < least {
				if there[c.op] = job; last == nil || c.op.asked > last.asked {
					last = c.op
				}
			}
			if i >= most {
				missing[c.op] = job
				if answered[c.op] && c.op.verb.kept(mode) {
					bad("%s of job %s was answered at %d, and is lost", c.op.verb, job, c.op.answered)
				}
			}
		}
	}
	for op := range answered {
		if op.verb.kept(mode) {
			rep.Promised++
		} else if missing[op] != "" {
			rep.Lost++
		}
	}
	for op, job := range missing {
		if last != nil && op.answered < last.asked {
			bad("%s of job %s, answered at %d, is lost; a later %s, asked for at %d, is there", op.verb, job, op.answered, last.verb, last.asked)
		}
		if other, half := there[op]; half && op.verb != Purge {
			bad("half of %q is there: that of job %s, not that of job %s", op.verb, other, job)
		}
	}
	slices.Sort(rep.Violations)
	return rep
}

// before is how many chapters may have been written when the power was cut.
func before(chapters []chapter, cut int) int {
	n := 0
	for n < len(chapters) && chapters[n].op.asked < cut {
		n++
	}
	return n
}

func (c chapter) String() string {
	return fmt.Sprintf("%s (asked %d, answered %d) -> %v", c.op.verb, c.op.asked, c.op.answered, c.To)
}
