package generics

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unicode/utf8"
)

var (
	// ErrStopped is the cause (see [context.Cause]) with which a stopping Worker cancels the handlers that are still
	// running after the grace period.
	ErrStopped = errors.New("the worker is stopping")
	// ErrRunning: Run was called on a Worker that is running.
	ErrRunning = errors.New("the worker is running already")
)

// DecodeError says that a job's payload isn't a value of the queue's type. The job has gone to the dead letters with
// reason [queue.InvalidPayload] and its bytes unchanged. Err is the codec's error.
type DecodeError struct {
	Queue string
	ID    int64
	Err   error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("the payload of job %d of queue %q can't be decoded: %s", e.ID, e.Queue, errorText(e.Err))
}

// Unwrap returns the codec's error.
func (e *DecodeError) Unwrap() error { return e.Err }

// PanicError is what a handler's panic becomes: the delivery's error, with outcome [Panicked]. Value is what was passed
// to panic; for [runtime.Goexit] it is nil.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the panic's text without the stack.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "panic: the handler's goroutine exited"
	}
	return "panic: " + valueText(e.Value)
}

// Unwrap returns Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Permanent makes a handler's error final: the job goes to the dead letters at once, reason [queue.Permanent].
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// Snooze gives the job back for d, when a handler returns it, without using up the attempt, even the last one. A
// negative d counts as 0.
func Snooze(d time.Duration) error { return &snoozeError{clampDelay(d)} }

// RetryAfter sets the delay before the next delivery in place of the Worker's Backoff. A negative d counts as 0.
// RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryError{clampDelay(d), err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.delay) }

type retryError struct {
	delay time.Duration
	err   error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

const maxDelay = 100 * 365 * 24 * time.Hour // what the queue accepts

func clampDelay(d time.Duration) time.Duration { return min(max(d, 0), maxDelay) }

const maxErrorText = 8 << 10 // bytes that the queue keeps of an error

// panicText is what is stored of a panic: its text and as much of the stack as fits.
func panicText(e *PanicError) string {
	text := e.Error()
	if len(text) > maxErrorText/2 {
		text = cutText(text, maxErrorText/2) + "..."
	}
	return cutText(text+"\n\n"+string(e.Stack), maxErrorText)
}

// cutText shortens s to at most n bytes, at a rune.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// errorText is err's text, also if its Error method panics.
func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T (its Error method panicked)", err)
		}
	}()
	return err.Error()
}

func valueText(v any) string {
	switch v := v.(type) {
	case *runtime.PanicNilError:
		return "nil"
	case error:
		return errorText(v)
	}
	return fmt.Sprint(v) // which survives a panicking String method
}
