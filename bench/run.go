//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Run measures what cfg asks for. With ErrFailed the report is there all the same, up to the run that failed. With
// any other error there is none; with ErrConfig nothing was created. When ctx ends, so do the processes, and the scratch directory is
// removed.
func Run(ctx context.Context, cfg Config) (_ *Report, err error) {
	c, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	report := &Report{Profile: c.Profile, Command: strings.Join(c.Repeat, " "), Started: time.Now()}
	s, err := newScratch(c.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	report.Machine = machine(s.dir)
	start := newThread()
	defer start.close()
	if err := c.measureAll(ctx, report, s, start); err != nil {
		return nil, err
	}
	report.Took = time.Since(report.Started)
	report.Figures = figures(report)
	if len(report.Failures) > 0 {
		return report, fmt.Errorf("%w: %s", ErrFailed, strings.Join(report.Failures, "; "))
	}
	return report, nil
}

func (c *Config) measureAll(ctx context.Context, report *Report, s *scratch, start *thread) error {
	plans := c.plans()
	total := len(plans) * c.Rounds
	tell := func(n int, name string) {
		if c.Progress != nil {
			c.Progress(Progress{Run: n, Runs: total, Name: name})
		}
	}
	if c.Limit != "" {
		report.Limit = &Limit{PerSecond: map[string]float64{}, Values: map[string][]float64{}}
	}
	for round := range c.Rounds {
		if c.Limit != "" {
			tell(round*len(plans)+1, "the limit in C")
			if err := report.Limit.measure(ctx, c, s); err != nil {
				return err
			}
		}
		for i := range plans {
			p := &plans[i]
			if c.Pairs > 0 && round%2 == 1 {
				p = &plans[i^1] // each of a pair goes first as often as the other
			}
			name := p.scenario + ": " + p.name
			tell(round*len(plans)+i+1, name)
			run, err := p.measure(ctx, s, start, c.Command)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			run.Round = round + 1
			report.Runs = append(report.Runs, run)
			if report.Failures = run.failures(); len(report.Failures) > 0 {
				return nil // what the others would say can't mend this
			}
		}
	}
	return nil
}

// failures says in a line each why a run doesn't count.
func (r *Result) failures() (all []string) {
	name := r.Scenario + ", " + r.Case
	if a := &r.Accounting; a.FailureCount > 0 {
		all = append(all, fmt.Sprintf("%s: %d failures in the accounting, such as: %s", name, a.FailureCount, a.Failures[0]))
	}
	if a := &r.Accounting; len(a.Integrity) > 0 {
		all = append(all, fmt.Sprintf("%s: the file is sick: %s", name, a.Integrity[0]))
	}
	if err := checkWakes(r); err != nil {
		all = append(all, fmt.Sprintf("%s: %v", name, err))
	}
	return all
}
