//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/localqueue/localqueue/cmd/localqueue/internal/child"
	"github.com/localqueue/localqueue/cmd/localqueue/internal/lines"
	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

const (
	exitBadData = 65 // EX_DATAERR of sysexits(3): the job can't ever be done

	errorTail = 8 << 10 // bytes of a command's stderr to keep; as many as the queue keeps of an error

	// outputLag is how long the output of processes that a command has left behind is waited for.
	outputLag = 500 * time.Millisecond
)

// Why a command was asked to end, other than the causes that the worker gives.
var (
	errStopping = errors.New("stopping")
	errTimeout  = errors.New("timed out")
)

// handle runs the command for one job.
func (w *work) handle(ctx context.Context, job *generics.Job[[]byte]) error {
	if w.ctx.Err() != nil {
		return generics.Snooze(0) // claimed at the last moment
	}
	ask, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer context.AfterFunc(w.ctx, func() { cancel(errStopping) })()
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	if w.flags.timeout > 0 {
		defer time.AfterFunc(w.flags.timeout, func() { cancel(errTimeout) }).Stop()
	}
	sig := func() syscall.Signal {
		if errors.Is(context.Cause(ask), errStopping) {
			return w.app.signals.signal()
		}
		return syscall.SIGTERM
	}
	stdout, stderr, tail := w.out.Writer(), w.err.Writer(), lines.NewTail(errorTail)
	if w.app.json {
		stdout = w.err.Writer()
	}
	ended, err := w.spawner.Run(ask, sig, w.app.signals.leave, child.Command{
		Path: w.path, Args: w.args, Env: append(slices.Clip(w.env), environment(job.Job)...), Stdin: job.Data,
		Stdout: stdout, Stderr: io.MultiWriter(stderr, tail), Grace: w.flags.grace, Linger: outputLag,
	})
	stdout.Flush()
	stderr.Flush()
	if start := (*child.StartError)(nil); errors.As(err, &start) {
		return w.notStarted(start.Err)
	}
	if err != nil {
		return err
	}
	return w.judge(ended, context.Cause(ask), tail.Bytes())
}

// notStarted decides what it means that the command couldn't be started. It isn't the job's fault.
func (w *work) notStarted(err error) error {
	for _, passing := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY} {
		if errors.Is(err, passing) {
			w.note("the command can't be started now: %v; trying again", err)
			return generics.Snooze(time.Second)
		}
	}
	w.stop(failf(errCommand, "the command can't be run any more: %v; its job was released", err))
	return generics.Snooze(0)
}

// judge turns the end of a command into the result of its job.
func (w *work) judge(ended child.Result, asked error, tail []byte) error {
	state, exit := ended.State, ended.State.ExitCode()
	if !ended.Asked {
		asked = nil // it had ended by itself before
	}
	stopping := errors.Is(asked, errStopping) || errors.Is(asked, generics.ErrStopped) || ended.Asked && asked == nil
	if stopping && ended.Killed {
		w.killed.Add(1)
	}
	switch {
	case errors.Is(asked, errTimeout): // also if it then exits 0, as a trap that cleans up does
		return newCommandError(exit, fmt.Sprintf("timed out after %v (%v)", w.flags.timeout, state), tail)
	case asked != nil && !stopping: // lost or cancelled: the result counts no more
		return asked
	case exit == 0:
		return nil
	case exit == exitBadData:
		return generics.Permanent(newCommandError(exit, state.String(), tail))
	case stopping:
		return generics.Snooze(0)
	}
	return newCommandError(exit, state.String(), tail)
}

// commandError is how a command failed. Its text is what the job keeps.
type commandError struct {
	exit int // -1 if a signal ended it
	what string
	tail string // of its stderr
}

func newCommandError(exit int, what string, tail []byte) *commandError {
	text := strings.TrimSpace(strings.ToValidUTF8(string(tail), "\uFFFD"))
	if room := errorTail - len(what) - len(": "); len(text) > room {
		text = text[len(text)-room:]
		for !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	return &commandError{exit, what, text}
}

func (e *commandError) Error() string {
	if e.tail == "" {
		return e.what
	}
	return e.what + ": " + e.tail
}

// inherited is the environment for every command: ours, but for what is said of an outer job.
func inherited(ours []string, dir string) []string {
	env := slices.DeleteFunc(slices.Clone(ours), func(v string) bool { return strings.HasPrefix(v, "LOCALQUEUE_") })
	return append(env, "LOCALQUEUE_DIR="+dir)
}

// environment is what a command is told of its job.
func environment(j *queue.Job) []string {
	headers, err := json.Marshal(orEmpty(j.Headers))
	if err != nil {
		headers = []byte("{}") // a map of strings always encodes
	}
	env := []string{
		"LOCALQUEUE_QUEUE=" + j.Queue,
		"LOCALQUEUE_ID=" + strconv.FormatInt(j.ID, 10),
		"LOCALQUEUE_JOB_ID=" + j.JobID,
		"LOCALQUEUE_ATTEMPT=" + strconv.Itoa(j.Attempt),
		"LOCALQUEUE_MAX_ATTEMPTS=" + strconv.Itoa(j.MaxAttempts),
		"LOCALQUEUE_DELIVERY=" + strconv.FormatInt(j.Delivery, 10),
		"LOCALQUEUE_RECEIPT=" + j.Receipt,
		"LOCALQUEUE_PRIORITY=" + strconv.Itoa(int(j.Priority)),
		"LOCALQUEUE_ENQUEUED_AT=" + instant(j.EnqueuedAt),
		"LOCALQUEUE_HEADERS=" + string(headers),
	}
	for _, name := range slices.Sorted(maps.Keys(j.Headers)) {
		env = append(env, "LOCALQUEUE_HEADER_"+variable(name)+"="+j.Headers[name])
	}
	// A NUL, which other writers of the file may have put anywhere, can't be passed on.
	return slices.DeleteFunc(env, func(v string) bool { return strings.Contains(v, "\x00") })
}

// variable makes a header's name fit for a variable's.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}
