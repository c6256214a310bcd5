//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/cmd/localqueue/internal/safe"
	"github.com/localqueue/localqueue/queue"
)

// Exit codes.
const (
	exitDone = iota
	exitError
	exitUsage
	exitEmpty
	exitLeaseLost
	exitBusy
	exitFull
	exitNotFound
)

var (
	errUsage     = errors.New("usage")            // the command line is wrong; nothing was done
	errUnhealthy = errors.New("not healthy")      // check has findings
	errCommand   = errors.New("command")          // work can't run its command
	errOutput    = errors.New("writing failed")   // stdout is gone
	errPayload   = errors.New("bad payload")      // an input line or argument isn't what it is said to be
	errInput     = errors.New("unreadable input") // the file or stdin that the input comes from
	errKilled    = errors.New("not all drained")  // work had to kill commands to stop
)

// errorClasses gives each kind of error its exit code and its name in JSON. The first that matches counts.
var errorClasses = []struct {
	is   error
	exit int
	code string
}{
	{errUsage, exitUsage, "usage"},
	{errOutput, exitError, "output"},
	{queue.ErrOutcomeUnknown, exitError, "outcome_unknown"},
	{queue.ErrLeaseLost, exitLeaseLost, "lease_lost"},
	{queue.ErrFull, exitFull, "full"},
	{queue.ErrBusy, exitBusy, "busy"},
	{queue.ErrEmpty, exitEmpty, "empty"},
	{queue.ErrNotFound, exitNotFound, "not_found"},
	{archive.ErrNoSuchQueue, exitNotFound, "no_such_queue"},
	{queue.ErrPayloadTooLarge, exitError, "payload_too_large"},
	{queue.ErrInMemory, exitUsage, "in_memory"},
	{queue.ErrInvalid, exitUsage, "usage"},
	{queue.ErrImportQueue, exitUsage, "import_queue"},
	{queue.ErrImportMoved, exitError, "import_moved"},
	{archive.ErrSameSource, exitError, "same_source"},
	{archive.ErrOtherSource, exitError, "other_source"},
	{archive.ErrOtherInput, exitError, "other_input"},
	{archive.ErrVersion, exitError, "newer_version"},
	{archive.ErrTruncated, exitError, "truncated"},
	{archive.ErrLine, exitError, "broken_line"},
	{archive.ErrExists, exitError, "file_exists"},
	{queue.ErrNoQueue, exitError, "no_queue"},
	{queue.ErrDuplicate, exitError, "duplicate"},
	{queue.ErrNotFailed, exitError, "not_failed"},
	{queue.ErrNotDelayed, exitError, "not_delayed"},
	{queue.ErrFinished, exitError, "finished"},
	{queue.ErrLeased, exitError, "leased"},
	{queue.ErrNotDirectory, exitError, "not_directory"},
	{queue.ErrNetworkFS, exitError, "network_fs"},
	{queue.ErrForeignFile, exitError, "foreign_file"},
	{queue.ErrNewerSchema, exitError, "newer_schema"},
	{queue.ErrOldSQLite, exitError, "old_sqlite"},
	{queue.ErrCorrupt, exitError, "corrupt"},
	{queue.ErrDiskFull, exitError, "disk_full"},
	{queue.ErrReadOnly, exitError, "read_only"},
	{queue.ErrReplaced, exitError, "replaced"},
	{queue.ErrExists, exitError, "exists"},
	{queue.ErrUnclosed, exitError, "unclosed"},
	{queue.ErrIO, exitError, "io"},
	{errUnhealthy, exitError, "unhealthy"},
	{errCommand, exitError, "command"},
	{errPayload, exitError, "bad_payload"},
	{errInput, exitError, "input"},
	{errKilled, exitError, "killed"},
	{context.DeadlineExceeded, exitBusy, "timeout"},
	{context.Canceled, exitError, "interrupted"},
}

func classify(err error) (exit int, code string) {
	if err == nil {
		return exitDone, ""
	}
	for _, c := range errorClasses {
		if errors.Is(err, c.is) {
			return c.exit, c.code
		}
	}
	return exitError, "error"
}

// failure is an error with a text of its own: the kind decides about the exit code, the text is all that is shown.
type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

func failf(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

// usagef is a mistake on the command line.
func usagef(format string, args ...any) error { return failf(errUsage, format, args...) }

// errorDoc is an error with --json.
type errorDoc struct {
	Error   string `json:"error"`
	Code    string `json:"code"`
	Exit    int    `json:"exit"`
	Queue   string `json:"queue,omitempty"`
	ID      int64  `json:"id,omitempty"`
	JobID   string `json:"job_id,omitempty"`
	Holder  int64  `json:"holder,omitempty"`  // of the key, for duplicate
	Cause   string `json:"cause,omitempty"`   // for lease_lost
	Line    int    `json:"line,omitempty"`    // of the input, for put --lines
	Stored  *int   `json:"stored,omitempty"`  // jobs stored, by put --lines, before the error
	Changed *int   `json:"changed,omitempty"` // jobs retried or removed before the error
}

// detailed adds what is known to the JSON of an error.
type detailed struct {
	error
	fill func(*errorDoc)
}

func (d *detailed) Unwrap() error { return d.error }

func detail(err error, fill func(*errorDoc)) error {
	if err == nil {
		return nil
	}
	return &detailed{err, fill}
}

// onJob says which job an error is about.
func onJob(err error, queue string, id int64) error {
	return detail(err, func(d *errorDoc) { d.Queue, d.ID = queue, id })
}

func newErrorDoc(err error) errorDoc {
	exit, code := classify(err)
	doc := errorDoc{Error: message(err), Code: code, Exit: exit}
	for d, e := (*detailed)(nil), err; errors.As(e, &d); e = d.error {
		d.fill(&doc)
	}
	if lost := (*queue.LeaseLostError)(nil); errors.As(err, &lost) {
		doc.Queue, doc.ID, doc.Cause = lost.Queue, lost.ID, string(lost.Cause)
	}
	if dup := (*queue.DuplicateError)(nil); errors.As(err, &dup) {
		doc.Queue, doc.ID, doc.JobID, doc.Holder = dup.Queue, dup.ID, dup.JobID, dup.Holder
	}
	return doc
}

// message is an error's text, with what to do about it where the engine, which knows no command line, can't say.
func message(err error) string {
	text := err.Error()
	switch {
	case errors.As(err, new(*failure)):
	case errors.Is(err, queue.ErrInMemory):
		text = `":memory:" is not a directory: name one with --dir`
	case errors.Is(err, queue.ErrNoQueue):
		text += "; put a job, or name another directory with --dir"
	case errors.Is(err, queue.ErrLeaseLost):
		if newLoss(err) == queue.LossExpired {
			text += "; claim with a longer --lease, or extend in time"
		}
	case errors.Is(err, queue.ErrFull):
		text += "; work some jobs off, or wait for room with --wait"
	case errors.Is(err, queue.ErrOutcomeUnknown):
		text += "; look with show --job-id, or repeat with the same --job-id"
	case errors.Is(err, queue.ErrBusy) && errors.Is(err, context.DeadlineExceeded):
		text = strings.TrimSuffix(text, ": "+context.DeadlineExceeded.Error()) + " all the time; try again, or wait longer"
	case errors.Is(err, queue.ErrBusy):
		text += "; try again, or raise --busy-timeout"
	case errors.Is(err, context.Canceled):
		text = "interrupted"
	}
	return inFlags.Replace(text)
}

// inFlags has the engine's texts name what the command line has, instead of what a Go program calls.
var inFlags = strings.NewReplacer(
	" (WithMaxPayload)", "",
	"(WithMaxPending)", "(--max-pending)",
	"run Check on it", "run localqueue check on it",
	"UniqueWhilePending needs a JobID", "--unique-while-pending needs --job-id",
	"invalid argument: At(", "invalid argument: --at (",
)

func newLoss(err error) queue.LossCause {
	if lost := (*queue.LeaseLostError)(nil); errors.As(err, &lost) {
		return lost.Cause
	}
	return ""
}

// printError writes one line, or with asJSON one document, and returns the exit code.
func printError(w io.Writer, asJSON bool, err error) int {
	doc := newErrorDoc(err)
	switch {
	case errors.Is(err, errOutput) && errors.Is(err, syscall.EPIPE) && !errors.As(err, new(*failure)):
		// The reader has seen enough, as head(1) does: nothing to complain about.
	case asJSON:
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(doc) // stderr is the last resort
	default:
		_, _ = fmt.Fprintln(w, "localqueue: "+safe.Line(doc.Error))
	}
	return doc.Exit
}

// wrapOutput marks a failed write of results.
func wrapOutput(err error) error {
	if err == nil || errors.Is(err, errOutput) {
		return err
	}
	if errors.Is(err, os.ErrClosed) {
		err = syscall.EPIPE
	}
	return fmt.Errorf("%w: stdout: %w", errOutput, err)
}
