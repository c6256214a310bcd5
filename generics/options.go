package generics

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Limits and defaults of a Worker.
const (
	DefaultGrace = 10 * time.Second

	maxConcurrency = 10_000
	maxAhead       = 1_000
	defaultAhead   = 64
)

// WorkerOption sets up a [Worker]. A bad value is reported by [Worker.Run], as ErrInvalid.
type WorkerOption func(*config) error

type config struct {
	concurrency  int
	ahead        int  // jobs that may wait for a handler
	aheadSet     bool // however long handlers take
	heartbeat    time.Duration
	heartbeatOff bool
	backoff      func(attempt int) time.Duration
	permanent    []error
	jobTimeout   time.Duration
	grace        time.Duration
	middleware   []any // func(Handler[T]) Handler[T]
	onStart      []func(*queue.Job)
	onDone       []func(Event)
	logger       *slog.Logger
	until        until
	endOn        []error
}

type until int

const (
	stopped until = iota // by ctx
	emptied
	drained
)

// configure applies options for a queue with this lease.
func configure(lease time.Duration, logger *slog.Logger, opts []WorkerOption) (config, error) {
	c := config{concurrency: runtime.GOMAXPROCS(0), ahead: defaultAhead, heartbeat: lease / 3, backoff: defaultBackoff, grace: DefaultGrace, logger: logger}
	var errs []error
	for _, opt := range opts {
		if opt != nil {
			errs = append(errs, opt(&c))
		}
	}
	if !c.heartbeatOff && c.heartbeat >= lease {
		errs = append(errs, invalid("heartbeat %v: must be shorter than the lease, which is %v", c.heartbeat, lease))
	}
	return c, errors.Join(errs...)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", queue.ErrInvalid, fmt.Sprintf(format, args...))
}

// Concurrency sets how many handlers run at once. Default runtime.GOMAXPROCS; from 1 to 10,000.
func Concurrency(n int) WorkerOption {
	return func(c *config) error {
		if n < 1 || n > maxConcurrency {
			return invalid("concurrency %d: must be between 1 and %d", n, maxConcurrency)
		}
		c.concurrency = n
		return nil
	}
}

// Prefetch sets how many jobs the Worker may claim ahead of its handlers. That saves short handlers the wait for the next
// claim; but a job claimed ahead waits behind this Worker's handlers even if another Worker is free, and uses up a delivery
// if the process dies. It is kept alive like the others and given back, no attempt used, when the Worker stops.
//
// By default a Worker claims ahead what its handlers, as long as they have been taking, begin with within 50 ms: at most 64
// jobs, and none if a handler takes longer than that. If one then takes longer than those before it, the jobs behind it are
// given back after half a second. With [NoHeartbeat] nothing is claimed ahead unless Prefetch asks for it.
//
// Prefetch(n) claims up to n ahead, however long handlers take; 0 turns that off. At most 1,000. Either way a job on its
// last delivery never waits, and for a while after a job that was delivered before nothing is claimed ahead: a process that
// dies again and again would use up the deliveries of the jobs behind.
func Prefetch(n int) WorkerOption {
	return func(c *config) error {
		if n < 0 || n > maxAhead {
			return invalid("prefetch %d: must be between 0 and %d", n, maxAhead)
		}
		c.ahead, c.aheadSet = n, true
		return nil
	}
}

// Heartbeat sets how often the leases of the jobs in hand are renewed. It must be 1 ms or more and shorter than the
// queue's lease; above half of it, one late heartbeat can cost the job. Default a third of the lease.
func Heartbeat(interval time.Duration) WorkerOption {
	return func(c *config) error {
		if interval < time.Millisecond {
			return invalid("heartbeat %v: must be 1ms or more; NoHeartbeat turns it off", interval)
		}
		c.heartbeat, c.heartbeatOff = interval, false
		return nil
	}
}

// NoHeartbeat leaves leases alone: a handler that outlasts its lease, and doesn't call [Job.Extend], is cancelled with
// cause ErrLeaseLost and its result is void.
func NoHeartbeat() WorkerOption {
	return func(c *config) error { c.heartbeatOff = true; return nil }
}

// Backoff sets the delay before the next delivery after a handler's error, by the number of the attempt that failed, from
// 1. Negative counts as 0. Default: exponential with full jitter, from 1 s to at most 5 min.
func Backoff(f func(attempt int) time.Duration) WorkerOption {
	return func(c *config) error {
		if f == nil {
			return invalid("the backoff is nil")
		}
		c.backoff = f
		return nil
	}
}

// PermanentErrors lists errors that send a job to the dead letters at once, by [errors.Is], as [Permanent] does.
func PermanentErrors(errs ...error) WorkerOption {
	return func(c *config) error {
		for _, err := range errs {
			if err == nil {
				return invalid("a permanent error is nil")
			}
		}
		c.permanent = append(c.permanent, errs...)
		return nil
	}
}

// JobTimeout ends a handler's context after d, with [context.DeadlineExceeded]. What the handler then returns counts as
// usual. Default 0: no limit.
func JobTimeout(d time.Duration) WorkerOption {
	return func(c *config) error {
		if d < 0 {
			return invalid("job timeout %v: must not be negative", d)
		}
		c.jobTimeout = d
		return nil
	}
}

// Grace sets how long a stopping Worker lets handlers run on before it cancels their contexts. Default 10 s; 0 cancels at
// once.
func Grace(d time.Duration) WorkerOption {
	return func(c *config) error {
		if d < 0 {
			return invalid("grace %v: must not be negative", d)
		}
		c.grace = d
		return nil
	}
}

// Middleware wraps the handler. The first one given is the outermost. T must be the Worker's.
func Middleware[T any](wrap ...func(next Handler[T]) Handler[T]) WorkerOption {
	return func(c *config) error {
		for _, w := range wrap {
			if w == nil {
				return invalid("a middleware is nil")
			}
			c.middleware = append(c.middleware, w)
		}
		return nil
	}
}

// OnStart has f called when a job's handler is about to run, in the job's goroutine. A panic in it is the handler's.
func OnStart(f func(job *queue.Job)) WorkerOption {
	return func(c *config) error {
		if f == nil {
			return invalid("an OnStart hook is nil")
		}
		c.onStart = append(c.onStart, f)
		return nil
	}
}

// OnDone has f called once for every job that the Worker claimed, after it was settled or lost; not for one that it claimed
// ahead and gave back unrun while it goes on. Calls come from several goroutines, and the next handler may be running by then; jobs whose calls have not returned count as being in hand, so a
// slow hook slows the Worker down. A panic in it is logged.
func OnDone(f func(Event)) WorkerOption {
	return func(c *config) error {
		if f == nil {
			return invalid("an OnDone hook is nil")
		}
		c.onDone = append(c.onDone, f)
		return nil
	}
}

// Logger sets where the Worker logs: failed jobs at info, its own faults at error, other ends of jobs at debug, with the
// keys queue, job, attempt and err. Default: the Store's logger.
func Logger(l *slog.Logger) WorkerOption {
	return func(c *config) error {
		if l == nil {
			return invalid("the logger is nil")
		}
		c.logger = l
		return nil
	}
}

// UntilEmpty makes Run return, with nil, when no job is claimable and none is in hand here. Delayed jobs, among them
// those waiting for another attempt, and jobs that others hold are left.
func UntilEmpty() WorkerOption {
	return func(c *config) error { c.until = max(c.until, emptied); return nil }
}

// UntilDrained makes Run return, with nil, when the queue has no job left that is ready, delayed or held by anybody.
func UntilDrained() WorkerOption {
	return func(c *config) error { c.until = drained; return nil }
}

// EndOn makes Run return an error of the store that matches one of these (by [errors.Is]), instead of trying again until it
// is gone. Handlers that run then get the [Grace] period as at any stop. For a program that has somebody to restart it,
// [queue.ErrReplaced] is one to end on: only opening the Store again helps.
func EndOn(errs ...error) WorkerOption {
	return func(c *config) error { c.endOn = append(c.endOn, errs...); return nil }
}

// defaultBackoff is full jitter: anything from 1 s to 1 s doubled with each attempt, but no more than 5 min. (It is drawn
// afresh from the attempt's number, which a backoff that keeps its state in memory can't do across processes.)
func defaultBackoff(attempt int) time.Duration {
	const low, high = time.Second, 5 * time.Minute
	ceiling := high
	if attempt < 9 { // 2^9 s is above 5 min
		ceiling = min(high, low<<max(attempt, 0))
	}
	return low + rand.N(ceiling-low+1)
}
