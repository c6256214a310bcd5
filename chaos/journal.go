package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// What journals tell of. Opening, purging and looking leave no line: their processes fail loudly by themselves.
const (
	opPut     = "put"     // of one job, or of a batch
	opImport  = "import"  // of a batch; any process may do it, once
	opClaim   = "claim"   // of one job, or several
	opAck     = "ack"     // also AckWith, whose follow-up is told with it
	opNack    = "nack"    // a handler's error
	opPanic   = "panic"   // a handler's panic
	opFail    = "fail"    // a permanent error
	opRelease = "release" // given back
	opNote    = "note"    // something that should not be, as a process saw it
	opGauge   = "gauge"   // how many goroutines the process has, in Want
)

// The errors that a call may be answered with and nothing is wrong, and errOther.
const (
	errLost    = "lost"    // the lease
	errEmpty   = "empty"   // nothing to claim
	errEnded   = "ended"   // the context: nothing has happened
	errUnknown = "unknown" // the context, with the commit under way
	errOther   = "error"
)

// job is what a journal says of one job of a call. What isn't known before the answer is zero in the intent.
type job struct {
	ID       int64  `json:",omitempty"`
	Delivery int64  `json:",omitempty"`
	Attempt  int    `json:",omitempty"`
	Max      int    `json:",omitempty"`
	Token    string `json:",omitempty"` // in the payload: no two puts have the same
	Key      string `json:",omitempty"`
	Dup      bool   `json:",omitempty"`
}

// entry is a line of a journal: an intent, or the answer to the intent of the same number.
type entry struct {
	N      int64
	Answer bool   `json:",omitempty"`
	Op     string `json:",omitempty"`
	Dir    string `json:",omitempty"` // "" is the round's main one
	Queue  string `json:",omitempty"`
	Jobs   []job  `json:",omitempty"`
	Want   int    `json:",omitempty"` // how many jobs a claim asks for
	Follow *job   `json:",omitempty"` // what an ack puts in its transaction, on queue On
	On     string `json:",omitempty"`
	Forged bool   `json:",omitempty"` // an ack with another delivery's receipt: it must be refused
	Err    string `json:",omitempty"`
	Why    string `json:",omitempty"` // the error's whole text
}

// journal is the file in which a process writes, from several goroutines. A line is one write to a file opened with O_APPEND:
// it outlives the process as soon as the call returns.
type journal struct {
	file *os.File
	last atomic.Int64
}

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{file: f}, nil
}

func (j *journal) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}

// intend writes what is about to be called, and returns the number under which to write the answer.
func (j *journal) intend(e entry) (n int64, err error) {
	e.N = j.last.Add(1)
	return e.N, j.write(e)
}

func (j *journal) answer(n int64, kind string, why error, jobs ...job) error {
	e := entry{N: n, Answer: true, Err: kind, Jobs: jobs}
	if why != nil && kind != errEmpty {
		e.Why = why.Error()
	}
	return j.write(e)
}

func (j *journal) close() error { return j.file.Close() }

// call is an intent with its answer, if there is one.
type call struct {
	entry
	Proc     string
	Answered bool
}

func (c *call) took() bool { return c.Answered && c.Err == "" }

// open tells whether the call may have happened or not.
func (c *call) open() bool { return !c.Answered || c.Err == errUnknown }

func (c *call) String() string {
	state := "answered"
	switch {
	case !c.Answered:
		state = "not answered"
	case c.Err != "":
		state = "answered " + c.Err + ": " + c.Why
	}
	return fmt.Sprintf("%s %d of %s on %s (%s)", c.Op, c.N, c.Proc, c.Queue, state)
}

var errTorn = errors.New("a line in the middle can't be read")

// readJournal pairs intents and answers. A last line without an end is one that its process was killed in, so it doesn't count.
func readJournal(proc string, text []byte) (calls []*call, err error) {
	byN := map[int64]*call{}
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			break
		}
		text = rest
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("the journal of %s: %w: %w", proc, errTorn, err)
		}
		if !e.Answer {
			byN[e.N] = &call{entry: e, Proc: proc}
			calls = append(calls, byN[e.N])
			continue
		}
		c := byN[e.N]
		if c == nil || c.Answered {
			return nil, fmt.Errorf("the journal of %s: answer %d has no intent, or two answers", proc, e.N)
		}
		c.Answered, c.Err, c.Why = true, e.Err, e.Why
		c.learn(e.Jobs)
	}
	return calls, nil
}

// learn adds what the answer says of the jobs.
func (c *call) learn(jobs []job) {
	if c.Op == opClaim {
		c.Jobs = jobs
		return
	}
	for i := range min(len(c.Jobs), len(jobs)) {
		c.Jobs[i].ID, c.Jobs[i].Dup = jobs[i].ID, jobs[i].Dup
	}
}
