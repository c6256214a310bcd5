package queue

import (
	"encoding/json"
	"log/slog"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits and defaults that an option can change, or that none can.
const (
	DefaultQueue      = "default"
	DefaultLease      = 60 * time.Second
	DefaultMaxRetries = 3
	DefaultMaxPayload = 16 << 20 // bytes
	DefaultBusy       = 10 * time.Second
	DefaultPoll       = 200 * time.Millisecond

	minLease      = time.Millisecond
	maxDelay      = 100 * 365 * 24 * time.Hour
	maxHeaders    = 64
	maxHeaderSize = 16 << 10 // bytes of all headers' names and values
	maxErrorText  = 8 << 10  // bytes
	maxName       = 255      // bytes of a queue's name
	maxKey        = 1 << 10  // bytes of a job_id
)

// Durability says which commits are synced to the disk before they are answered. See docs/guarantees.md for what a power
// cut can take in each; a crash of the program takes nothing in any of them.
type Durability string

const (
	Full     Durability = "full"     // every commit is synced
	Balanced Durability = "balanced" // puts, and whatever moves a job to or from a final state, are synced; claims and acks aren't: losing those redelivers
	Normal   Durability = "normal"   // no commit is synced by itself; a power cut takes the last ones, and leaves the file sound
)

type config struct {
	// of the Store
	busy       time.Duration
	durability Durability
	clock      func() time.Time
	poll       time.Duration
	noLine     bool
	networkFS  bool
	mustExist  bool
	inline     bool
	logger     *slog.Logger
	worker     string
	// of a Queue
	name       string
	lease      time.Duration
	maxRetries int
	maxPending int64
	maxPayload int
}

func defaults() config {
	return config{busy: DefaultBusy, durability: Balanced, clock: time.Now, poll: DefaultPoll, logger: slog.Default(),
		name: DefaultQueue, lease: DefaultLease, maxRetries: DefaultMaxRetries, maxPayload: DefaultMaxPayload}
}

// Option sets up a Store or a Queue. Those of a Queue may be given to [Open] too: they are then the defaults of every
// queue of the Store. A bad value is reported by the call that takes the option, as ErrInvalid.
type Option struct {
	storeOnly bool
	name      string
	apply     func(*config) error
}

func storeOption(name string, apply func(*config) error) Option {
	return Option{storeOnly: true, name: name, apply: apply}
}

func queueOption(name string, apply func(*config) error) Option {
	return Option{name: name, apply: apply}
}

// WithBusyTimeout sets how long an operation waits for another writer before it fails with ErrBusy. Default 10 s; 0 fails at once.
func WithBusyTimeout(d time.Duration) Option {
	return storeOption("WithBusyTimeout", func(c *config) error {
		if d < 0 {
			return invalid("busy timeout %v: must not be negative", d)
		}
		c.busy = d
		return nil
	})
}

// WithDurability chooses which commits are synced. Default Balanced.
func WithDurability(d Durability) Option {
	return storeOption("WithDurability", func(c *config) error {
		switch d {
		case Full, Balanced, Normal:
			c.durability = d
			return nil
		}
		return invalid("durability %q: use full, balanced or normal", string(d))
	})
}

// WithClock injects the clock that stamps jobs and ends leases; for tests. Waiting goes by the monotonic clock whatever
// this one says, and looks at it again at every poll. Default time.Now.
func WithClock(now func() time.Time) Option {
	return storeOption("WithClock", func(c *config) error {
		if now == nil {
			return invalid("the clock is nil")
		}
		c.clock = now
		return nil
	})
}

// WithPoll sets how often a waiting Get or Put looks for writes of programs that don't ring: an sqlite3 shell, the Python
// original. Default 200 ms. Stores, in this process and in others, wake it at once whatever this is.
func WithPoll(d time.Duration) Option {
	return storeOption("WithPoll", func(c *config) error {
		if d < time.Millisecond {
			return invalid("poll interval %v: must be 1ms or more", d)
		}
		c.poll = d
		return nil
	})
}

// WithoutLine leaves the order of processes that want to write to SQLite's busy handler, which sleeps and starves some of
// them. It is there to measure what the line between processes is worth (localqueue bench --no-line).
func WithoutLine() Option {
	return storeOption("WithoutLine", func(c *config) error { c.noLine = true; return nil })
}

// AllowNetworkFS opens a directory on a network file system all the same. SQLite's locks are unreliable on those: use it
// only where a single process opens the file.
func AllowNetworkFS() Option {
	return storeOption("AllowNetworkFS", func(c *config) error { c.networkFS = true; return nil })
}

// MustExist refuses, with ErrNoQueue, a directory that holds no queue, instead of making one.
func MustExist() Option {
	return storeOption("MustExist", func(c *config) error { c.mustExist = true; return nil })
}

// InlinePayloads keeps payloads of any size in the job's own row, where the Python original finds them. Transitions of
// jobs above 2 kB are then slower.
func InlinePayloads() Option {
	return storeOption("InlinePayloads", func(c *config) error { c.inline = true; return nil })
}

// WithLogger sets where the Store and its Workers report their own faults. Default slog.Default().
func WithLogger(l *slog.Logger) Option {
	return storeOption("WithLogger", func(c *config) error {
		if l == nil {
			return invalid("the logger is nil")
		}
		c.logger = l
		return nil
	})
}

// WithName names this receiver in the history of the jobs it claims, as host:pid:name. Default "": host:pid.
func WithName(name string) Option {
	return storeOption("WithName", func(c *config) error {
		if err := checkText("receiver name", name, maxName); err != nil {
			return err
		}
		c.worker = name
		return nil
	})
}

// WithQueue chooses the queue's name where a call opens Store and Queue together. Default "default".
func WithQueue(name string) Option {
	return queueOption("WithQueue", func(c *config) error { c.name = name; return checkQueueName(name) })
}

// WithLease sets how long a claim holds a job unless it is extended. Default 60 s; at least 1 ms, at most 100 years.
func WithLease(d time.Duration) Option {
	return queueOption("WithLease", func(c *config) error {
		if d < minLease || d > maxDelay {
			return invalid("lease %v: must be between 1ms and 100 years", d)
		}
		c.lease = d
		return nil
	})
}

// WithMaxRetries sets how often a job put here is delivered again after its first delivery. Default 3; 0 means one delivery.
func WithMaxRetries(n int) Option {
	return queueOption("WithMaxRetries", func(c *config) error { c.maxRetries = n; return checkMaxRetries(n) })
}

// WithMaxPending limits ready (also delayed) plus leased jobs; a put beyond it waits, TryPut fails with ErrFull. Only this Store's puts
// are limited: give the same limit in every process. Default 0: no limit.
func WithMaxPending(n int) Option {
	return queueOption("WithMaxPending", func(c *config) error {
		if n < 0 {
			return invalid("max pending %d: must not be negative", n)
		}
		c.maxPending = int64(n)
		return nil
	})
}

// WithMaxPayload limits a payload, in bytes. Default 16 MiB; at most 512 MiB.
func WithMaxPayload(bytes int) Option {
	return queueOption("WithMaxPayload", func(c *config) error {
		if bytes < 1 || bytes > 512<<20 {
			return invalid("max payload %d: must be between 1 byte and 512 MiB", bytes)
		}
		c.maxPayload = bytes
		return nil
	})
}

// PutOption describes one job to put.
type PutOption interface{ applyPut(*putSpec) error }

// SettleOption says how a delivery ends.
type SettleOption interface{ applySettle(*settleSpec) error }

type putFunc func(*putSpec) error

func (f putFunc) applyPut(s *putSpec) error { return f(s) }

// JobID gives the job a key. A put whose key another job of the queue holds stores nothing and returns that job's id. The
// key is held while the job's row exists, in every state (see UniqueWhilePending). At most 1024 bytes, not empty.
func JobID(key string) PutOption {
	return putFunc(func(s *putSpec) error {
		if key == "" {
			return invalid("job_id is empty: leave it out instead")
		}
		if err := checkText("job_id", key, maxKey); err != nil {
			return err
		}
		s.key = &key
		return nil
	})
}

// UniqueWhilePending releases the job's key once the job is acked or failed, so that it never blocks the next one.
func UniqueWhilePending() PutOption {
	return putFunc(func(s *putSpec) error { s.pendingKey = true; return nil })
}

// DelayOption holds a job back for a while, at a put, a nack or a release.
type DelayOption time.Duration

// Delay makes the job due d from now. 0 is now; negative or over 100 years is refused.
func Delay(d time.Duration) DelayOption { return DelayOption(d) }

func (d DelayOption) check() error {
	if d < 0 || time.Duration(d) > maxDelay {
		return invalid("delay %v: must be between 0 and 100 years", time.Duration(d))
	}
	return nil
}

func (d DelayOption) applyPut(s *putSpec) error {
	s.delay, s.at = millis(time.Duration(d)), nil
	return d.check()
}

func (d DelayOption) applySettle(s *settleSpec) error {
	s.delay = millis(time.Duration(d))
	return d.check()
}

// At makes the job due at an instant. The past means now; over 100 years ahead is refused.
func At(t time.Time) PutOption {
	return putFunc(func(s *putSpec) error { s.delay, s.at = 0, &t; return nil })
}

// Priority lets a job overtake those with a lower one. Default 0.
func Priority(p int16) PutOption {
	return putFunc(func(s *putSpec) error { s.priority = p; return nil })
}

// MaxRetries overrides the queue's WithMaxRetries for one job.
func MaxRetries(n int) PutOption {
	return putFunc(func(s *putSpec) error { s.maxRetries = n; return checkMaxRetries(n) })
}

// Header attaches a small piece of metadata. At most 64, 16 KiB together.
func Header(name, value string) PutOption {
	return putFunc(func(s *putSpec) error {
		if name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return invalid("header %q: name and value must be UTF-8, the name not empty", name)
		}
		if s.headers == nil {
			s.headers = map[string]string{}
		}
		s.headers[name] = value
		return nil
	})
}

// As records why a delivery ended: for Fail one of Permanent (the default), InvalidPayload and Panicked; for Nack, only
// Panicked, which is kept as the delivery's outcome, and as the reason if it was the last one.
func As(r Reason) SettleOption {
	return settleFunc(func(s *settleSpec) error { s.reason = r; return nil })
}

type settleFunc func(*settleSpec) error

func (f settleFunc) applySettle(s *settleSpec) error { return f(s) }

func checkMaxRetries(n int) error {
	if n < 0 || n > 1<<30 {
		return invalid("max retries %d: must be between 0 and 2^30", n)
	}
	return nil
}

func checkQueueName(name string) error {
	if name == "" {
		return invalid("the queue's name is empty")
	}
	return checkText("queue name", name, maxName)
}

func checkText(what, s string, most int) error {
	if len(s) > most {
		return invalid("%s is %d bytes long: at most %d", what, len(s), most)
	}
	if !utf8.ValidString(s) {
		return invalid("%s %q is not UTF-8", what, s)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return invalid("%s %q has a control character", what, s)
		}
	}
	return nil
}

func encodeHeaders(h map[string]string) (*string, error) {
	if len(h) == 0 {
		return nil, nil
	}
	size := 0
	for k, v := range h {
		size += len(k) + len(v)
	}
	if len(h) > maxHeaders || size > maxHeaderSize {
		return nil, invalid("%d headers of %d bytes: at most %d, %d bytes together", len(h), size, maxHeaders, maxHeaderSize)
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, invalid("headers: %v", err)
	}
	text := string(b)
	return &text, nil
}
