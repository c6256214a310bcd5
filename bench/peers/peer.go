package main

import (
	"context"
	"errors"
)

// A contender is one queue that can be measured: a library in this process, or a Python package in a process of its own.
type contender interface {
	about() about
	// prepare does what is needed once, like installing a Python package. An error leaves the contender out.
	prepare(ctx context.Context) error
	// run does one piece of work on a fresh queue in dir. An error that matches errNoWay says that the queue has no such way.
	run(ctx context.Context, t task, dir string) (measure, error)
}

// errNoWay marks a piece of work that a queue doesn't offer; its text is the reason, as it is printed.
var errNoWay = errors.New("")

type about struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Driver  string `json:"driver"`
	Ack     string `json:"ack"`     // what remains of a job that is done
	Differs string `json:"differs"` // what to know before comparing: guarantees, and how it is used here
}

// task is one piece of work as it is asked for, also of the Python program, which gets it as JSON.
type task struct {
	Work    work    `json:"work"`
	Setting setting `json:"setting"`
	Seconds float64 `json:"seconds"`
	Payload int     `json:"payload"` // bytes
	Backlog int     `json:"backlog"` // jobs put before, and again when they are used up, outside the time taken
	Batch   int     `json:"batch"`
	Count   int     `json:"count"` // of work exact
}

// measure is what came of a task.
type measure struct {
	Jobs       int      `json:"jobs"`
	Seconds    float64  `json:"seconds"`
	Errors     int      `json:"errors,omitempty"` // operations that failed while others went on
	FirstError string   `json:"first_error,omitempty"`
	InForce    inForce  `json:"in_force"`
	Payloads   []string `json:"payloads,omitempty"` // of work exact: what was received, in that order
}

// inForce is what the queue's own connection answers when asked, after the work.
type inForce struct {
	JournalMode string `json:"journal_mode"`
	Synchronous string `json:"synchronous"`
	PageSize    string `json:"page_size"`
	BusyTimeout string `json:"busy_timeout"`
	SQLite      string `json:"sqlite"`
	Note        string `json:"note,omitempty"`
}

// session is an open queue of a library in this process. What else it can do shows in the interfaces below.
type session interface {
	put(ctx context.Context, payload string) error
	inForce(ctx context.Context) (inForce, error)
	close() error
}

type batchPutter interface {
	putMany(ctx context.Context, payloads []string) error
}

// getter receives one job and settles it as done; ok is false when there is none.
type getter interface {
	getAck(ctx context.Context) (payload string, ok bool, err error)
}

// workerPutter puts jobs in the form that the queue's worker takes, where that isn't the form of its put.
type workerPutter interface {
	putForWorker(ctx context.Context, payloads []string) error
}

// batchGetter does so for up to n jobs, in one transaction for receiving them and one for settling them.
type batchGetter interface {
	getAckMany(ctx context.Context, n int) (payloads []string, err error)
}

// worker runs the queue's own worker until ctx ends, and returns once the jobs in hand are settled.
type worker interface {
	work(ctx context.Context, handlers int, handle func(payload string)) error
}

// goPeer is a contender in this process.
type goPeer struct {
	info about
	open func(ctx context.Context, dir string, s setting) (session, error)
	lack map[work]string // why a piece of work is not there, where the code alone doesn't tell
}

func (p *goPeer) about() about                  { return p.info }
func (p *goPeer) prepare(context.Context) error { return nil }

func (p *goPeer) run(ctx context.Context, t task, dir string) (m measure, err error) {
	s, err := p.open(ctx, dir, t.Setting)
	if err != nil {
		return measure{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if m, err = loop(ctx, s, t); err != nil {
		var absent *absentError
		if errors.As(err, &absent) && p.lack[t.Work] != "" {
			return m, &absentError{p.lack[t.Work]}
		}
		return m, err
	}
	m.InForce, err = s.inForce(ctx)
	return m, err
}

// absentError is errNoWay with its reason.
type absentError struct{ reason string }

func (e *absentError) Error() string        { return e.reason }
func (e *absentError) Is(target error) bool { return target == errNoWay }
