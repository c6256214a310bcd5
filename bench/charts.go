//go:build unix

package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// charts chooses what a report's page shows of a scenario in pictures.
func (r *Report) charts(scenario string) []chart {
	switch scenario {
	case "contention":
		return r.contentionCharts()
	case "backlog":
		return r.backlogCharts()
	case "batch", "payload":
		return r.sizeCharts(scenario)
	case "wakeup":
		return r.wakeCharts()
	}
	return nil
}

// contentionCharts go by the number of processes, one line for each way of arbitration.
func (r *Report) contentionCharts() []chart {
	var counts []int
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Scenario == "contention" && run.Roles[0].Name == roleCycle && !slices.Contains(counts, run.Params.Processes) {
			counts = append(counts, run.Params.Processes)
		}
	}
	slices.Sort(counts)
	var all []chart
	if len(counts) > 1 {
		one := 1.0
		for _, c := range []struct {
			chart
			figure string
		}{
			{chart{Title: "Throughput over processes", About: "put, get and ack of a job, together; more is better", unit: "jobs/s"}, "throughput"},
			{chart{Title: "Fairness over processes", About: "Jain's index: 1 is equal shares", top: &one}, "fairness (Jain)"},
			{chart{Title: "The worst single operation", About: "the longest put, get or ack of the run (median over the rounds); less is better", unit: "ms", log: true}, "worst operation"},
			{chart{Title: "The longest time without a turn", About: "in which a process completed nothing; less is better", unit: "ms", log: true}, "longest gap"},
		} {
			c.x = "processes"
			for _, n := range counts {
				c.labels = append(c.labels, fmt.Sprint(n))
			}
			for _, line := range []bool{true, false} {
				s := series{name: lineName[line]}
				for _, n := range counts {
					s.values = append(s.values, r.contentionValue(n, line, c.figure))
				}
				c.add(s)
			}
			if len(c.series) > 0 {
				all = append(all, c.chart)
			}
		}
	}
	if c, ok := r.shareChart(); ok {
		all = append(all, c)
	}
	if c, ok := r.distribution("contention", []string{opPut, opClaim, opAck, opWhole}); ok {
		all = append(all, c)
	}
	return all
}

// contentionValue is a figure of the run with so many processes.
func (r *Report) contentionValue(processes int, line bool, figure string) float64 {
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Scenario == "contention" && run.Roles[0].Name == roleCycle && run.Params.Processes == processes && run.Params.Line == line {
			if figure == "fairness (Jain)" && processes == 1 {
				return 1 // nobody to share with
			}
			if f, ok := r.figure("contention", run.Case, roleCycle+" "+figure); ok {
				return f.Median
			}
		}
	}
	return math.NaN()
}

// shareChart shows who got how much of the run with the most processes, of the first round.
func (r *Report) shareChart() (c chart, ok bool) {
	most := 1
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Scenario == "contention" && run.Roles[0].Name == roleCycle {
			most = max(most, run.Params.Processes)
		}
	}
	c = chart{Title: "Shares of the processes", About: fmt.Sprintf("of %d, from the one that did most; flat is fair", most), x: "process", unit: "%"}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Scenario != "contention" || run.Roles[0].Name != roleCycle || run.Params.Processes != most || run.Round != 1 {
			continue
		}
		s := series{name: lineName[run.Params.Line]}
		for _, share := range slices.Backward(slices.Sorted(slices.Values(run.Roles[0].Shares))) {
			s.values = append(s.values, 100*share)
		}
		c.add(s)
	}
	for n := range most {
		c.labels = append(c.labels, fmt.Sprint(n+1))
	}
	return c, most > 1 && len(c.series) > 0
}

var lineName = map[bool]string{true: "with the line", false: "SQLite's busy handler alone"}

// add takes a series that has a value at all.
func (c *chart) add(s series) {
	if slices.ContainsFunc(s.values, func(v float64) bool { return !math.IsNaN(v) }) {
		c.series = append(c.series, s)
	}
}

// distribution shows the latencies of the scenario's last run, from the fastest to the slowest operation.
func (r *Report) distribution(scenario string, ops []string) (c chart, ok bool) {
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Scenario != scenario {
			continue
		}
		next := chart{Title: "Latency, from the fastest to the slowest", About: run.Case, x: "percent that took at most so long", unit: "us", log: true}
		if !run.Params.Line {
			continue // as SQLite leaves it: that is for comparison
		}
		for _, role := range run.Roles {
			for _, op := range ops {
				if l, ok := role.Latency[op]; ok {
					next.labels = nil
					s := series{name: op}
					for _, p := range l.Curve {
						next.labels = append(next.labels, trimPercent(p.Percent))
						s.values = append(s.values, p.Micros)
					}
					next.add(s)
				}
			}
		}
		if len(next.series) > 0 {
			c, ok = next, true
		}
	}
	return c, ok
}

func trimPercent(p float64) string { return strings.TrimSuffix(fmt.Sprintf("%g", p), ".0") }

// backlogCharts go by the number of jobs that are there already, one line for each state.
func (r *Report) backlogCharts() []chart {
	var rows []int
	var states []string
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Scenario == "backlog" {
			if !slices.Contains(rows, run.Params.Backlog) {
				rows = append(rows, run.Params.Backlog)
			}
			if !slices.Contains(states, run.Params.State) {
				states = append(states, run.Params.State)
			}
		}
	}
	slices.Sort(rows)
	if len(rows) < 2 {
		return nil
	}
	var all []chart
	for _, c := range []struct {
		chart
		figure string
	}{
		{chart{Title: "A claim beside a backlog, median", About: "flat is good: a claim shouldn't care how much else is there", unit: "us"}, "claim p50"},
		{chart{Title: "A claim beside a backlog, 99th percentile", About: "the same, of the slower ones", unit: "us", log: true}, "claim p99"},
	} {
		c.x = "jobs that are there already"
		for _, n := range rows {
			c.labels = append(c.labels, grouped(int64(n)))
		}
		for _, state := range states {
			s := series{name: state}
			for _, n := range rows {
				f, ok := r.figure("backlog", fmt.Sprintf("%d %s", n, state), roleCycle+" "+c.figure)
				if !ok {
					f.Median = math.NaN()
				}
				s.values = append(s.values, f.Median)
			}
			c.add(s)
		}
		all = append(all, c.chart)
	}
	return all
}

// sizeCharts go by the size of a payload or of a batch.
func (r *Report) sizeCharts(scenario string) []chart {
	c := chart{Title: "Throughput over the size of a " + scenario, About: "put, get and ack of a job, together; more is better", x: scenario, unit: "jobs/s", log: true}
	if scenario == "batch" {
		c.x = "jobs in a call"
	}
	s := series{name: "jobs a second"}
	for i := range r.Runs {
		run := &r.Runs[i]
		label := strings.TrimSuffix(run.Case, batchSuffix)
		if run.Scenario != scenario || slices.Contains(c.labels, label) {
			continue
		}
		if f, ok := r.figure(scenario, run.Case, roleCycle+" throughput"); ok {
			c.labels = append(c.labels, label)
			s.values = append(s.values, f.Median)
		}
	}
	if len(c.labels) < 2 {
		return nil
	}
	c.add(s)
	return []chart{c}
}

func (r *Report) wakeCharts() []chart {
	var both chart
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Scenario != "wakeup" || run.Round != 1 {
			continue
		}
		for _, role := range run.Roles {
			for _, op := range []string{opWake, opRoom} {
				if l, ok := role.Latency[op]; ok {
					both.labels = nil
					s := series{name: op}
					for _, p := range l.Curve {
						both.labels = append(both.labels, trimPercent(p.Percent))
						s.values = append(s.values, p.Micros)
					}
					both.add(s)
				}
			}
		}
	}
	if len(both.series) == 0 {
		return nil
	}
	both.Title, both.About = "Waking across processes", "from the return of the call that woke to the return of the call that had waited"
	both.x, both.unit, both.log = "percent that took at most so long", "us", true
	return []chart{both}
}
