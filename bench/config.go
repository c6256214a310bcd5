//go:build unix

package bench

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// The errors of [Run], for [errors.Is].
var (
	// ErrConfig: the configuration asks for what can't be measured. Nothing was created.
	ErrConfig = errors.New("bad benchmark configuration")
	// ErrFailed: an accounting, an integrity check or a bound failed. The report has the runs up to that one.
	ErrFailed = errors.New("the benchmark's checks failed")
)

// Profile says how much is measured when nothing more precise is asked for.
type Profile string

const (
	Smoke    Profile = "smoke"    // every scenario, small: under 20 s
	Standard Profile = "standard" // some minutes
	Full     Profile = "full"     // the better part of an hour
)

// Config says what to measure. Zero fields take the profile's values.
type Config struct {
	Profile   Profile  // default Standard
	Scenarios []string // names from Scenarios(); none is all of them

	Processes  []int // of the contention scenario
	Producers  int   // with Consumers: a mix of roles instead of processes that do everything
	Consumers  int
	Goroutines int // in each process; default 1, and 8 handlers of a Worker
	Durability queue.Durability
	Payload    int           // bytes
	Duration   time.Duration // of each run
	Count      int           // of rounds of each goroutine, instead of a Duration
	Rounds     int           // how often each run is repeated, in turns; figures are medians
	Pairs      int           // contention with the line and without it, in turns, so many times each
	NoLine     bool          // leave the order of processes to SQLite's busy handler

	Dir      string // where the queues are made; "" is a scratch directory of the run's own
	Reuse    bool   // Dir may hold a queue already
	Limit    string // the limit program (make limit), "" to leave it out
	LimitSQL string // the directory with its schema and queries

	Command  []string // starts this program so that it calls Child; default: the executable with "bench child"
	Repeat   []string // the command line that repeats the run, for the report
	Progress func(Progress)

	ownDuration bool // Duration was asked for
	addedSingle bool // the scenario single was not: it is what the limit is compared with
}

// Progress tells what is being measured.
type Progress struct {
	Run, Runs int // from 1
	Name      string
}

// maxProcesses keeps a slip of the keyboard from starting more processes than a machine bears.
const maxProcesses = 256

// Check says, as ErrConfig, what can't be measured, and changes nothing.
func (c *Config) Check() error {
	_, err := c.filled()
	return err
}

func badConfig(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
}

// filled is the configuration with the profile's values, or why there is none.
func (c *Config) filled() (Config, error) {
	f := *c
	f.Profile = cmp.Or(f.Profile, Standard)
	size, ok := profiles[f.Profile]
	if !ok {
		return f, badConfig("profile %q: use smoke, standard or full", f.Profile)
	}
	for _, name := range f.Scenarios {
		if !slices.Contains(Scenarios(), name) {
			return f, badConfig("scenario %q: use %s", name, strings.Join(Scenarios(), ", "))
		}
	}
	if err := f.checkNumbers(); err != nil {
		return f, err
	}
	if err := f.checkRoles(); err != nil {
		return f, err
	}
	if err := f.checkPlaces(); err != nil {
		return f, err
	}
	if len(f.Scenarios) == 0 {
		f.Scenarios = Scenarios()
	}
	if f.addedSingle = f.Limit != "" && !slices.Contains(f.Scenarios, "single"); f.addedSingle {
		f.Scenarios = append([]string{"single"}, f.Scenarios...)
	}
	if len(f.Processes) == 0 {
		f.Processes = size.processes
	}
	f.Goroutines = cmp.Or(f.Goroutines, 1)
	f.Durability = cmp.Or(f.Durability, queue.Balanced)
	f.Payload = cmp.Or(f.Payload, defaultPayload)
	f.Rounds = cmp.Or(f.Rounds, f.Pairs, size.rounds)
	f.ownDuration = f.Duration > 0
	if f.Duration == 0 && f.Count == 0 {
		f.Duration = size.duration
		if f.Pairs > 0 {
			f.Duration = max(f.Duration, pairDuration)
		}
	}
	if len(f.Command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return f, fmt.Errorf("this program's own path, to start it again: %w", err)
		}
		f.Command = []string{self, "bench", "child"}
	}
	return f, nil
}

func (c *Config) checkNumbers() error {
	for _, n := range []struct {
		name  string
		value int
		most  int
	}{
		{"producers", c.Producers, maxProcesses}, {"consumers", c.Consumers, maxProcesses}, {"goroutines", c.Goroutines, 10_000},
		{"count", c.Count, 1 << 30}, {"rounds", c.Rounds, 10_000}, {"pairs", c.Pairs, 10_000}, {"payload", c.Payload, queue.DefaultMaxPayload},
	} {
		if n.value < 0 || n.value > n.most {
			return badConfig("%s %d: must be between 1 and %d", n.name, n.value, n.most)
		}
	}
	for _, n := range c.Processes {
		if n < 1 || n > maxProcesses {
			return badConfig("processes %d: must be between 1 and %d", n, maxProcesses)
		}
	}
	switch {
	case c.Payload != 0 && c.Payload < stampSize:
		return badConfig("payload %d: at least %d bytes, for the time of the put", c.Payload, stampSize)
	case c.Duration < 0:
		return badConfig("duration %v: must not be negative", c.Duration)
	case c.Duration > 0 && c.Count > 0:
		return badConfig("a duration and a count exclude each other")
	case c.Pairs > 0 && c.Rounds > 0:
		return badConfig("pairs and rounds exclude each other: a pair is a round with the line and one without")
	case c.Pairs > 0 && c.NoLine:
		return badConfig("pairs measure with the line and without it: leave out no-line")
	}
	return nil
}

func (c *Config) checkRoles() error {
	only := func(names ...string) bool {
		return len(c.Scenarios) > 0 && !slices.ContainsFunc(c.Scenarios, func(s string) bool { return !slices.Contains(names, s) })
	}
	switch {
	case (c.Producers > 0) != (c.Consumers > 0):
		return badConfig("%d producers and %d consumers: a mix of roles needs both", c.Producers, c.Consumers)
	case c.Producers > 0 && len(c.Processes) > 0:
		return badConfig("processes do everything: give either them, or producers and consumers")
	case c.Producers > 0 && c.Count > 0:
		return badConfig("producers and consumers work for a duration, not a count: a consumer can't know its share")
	case c.Producers > 0 && !only("contention", "kill"):
		return badConfig("producers and consumers belong to the scenarios contention and kill: name one of them")
	case c.Pairs > 0 && !only("contention"):
		return badConfig("pairs belong to the scenario contention: name it")
	case c.Duration > 0 && len(c.Scenarios) > 0 && only("backlog", "wakeup", "worker", "single"):
		return badConfig("%s goes by a count, not a duration", strings.Join(c.Scenarios, " and "))
	case c.Count > 0 && only("kill"):
		return badConfig("the scenario kill goes by a duration: a killed process has no count")
	}
	switch c.Durability {
	case "", queue.Full, queue.Balanced, queue.Normal:
		return nil
	}
	return badConfig("durability %q: use full, balanced or normal", string(c.Durability))
}

func (c *Config) checkPlaces() error {
	if c.Dir != "" {
		info, err := os.Stat(c.Dir)
		switch {
		case err == nil && !info.IsDir():
			return badConfig("%s is not a directory", c.Dir)
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return badConfig("the directory can't be used: %v", err)
		case err != nil:
			if above, err := os.Stat(filepath.Dir(c.Dir)); err != nil || !above.IsDir() {
				return badConfig("the directory can't be made: there is no %s", filepath.Dir(c.Dir))
			}
		}
		if _, err := os.Stat(filepath.Join(c.Dir, "localqueue.db")); err == nil && !c.Reuse {
			return badConfig("%s holds a queue: name another directory, or allow its reuse; the queues of the benchmark are made in a directory of their own below it", c.Dir)
		}
	}
	if c.Limit == "" {
		return nil
	}
	if info, err := os.Stat(c.Limit); err != nil || info.IsDir() {
		return badConfig("the limit program %s isn't there: build it with make limit", c.Limit)
	}
	if _, err := os.Stat(filepath.Join(c.LimitSQL, "migrations")); err != nil {
		return badConfig("the limit program needs the schema: %s has no migrations in it", cmp.Or(c.LimitSQL, "."))
	}
	return nil
}
