//go:build unix

package bench

import (
	"slices"
	"strings"
)

// Figure is one number of a report, the median of its rounds.
type Figure struct {
	Scenario string    `json:"scenario"`
	Case     string    `json:"case"`
	Name     string    `json:"name"`
	Unit     string    `json:"unit"`
	Higher   bool      `json:"higher_is_better"`
	Median   float64   `json:"median"`
	Values   []float64 `json:"values"` // of each round
}

// figures are all numbers of a report worth comparing.
func figures(r *Report) []Figure {
	var all []Figure
	at := map[string]int{}
	add := func(scenario, name, figure, unit string, higher bool, value float64) {
		key := strings.Join([]string{scenario, name, figure}, "\x00")
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key] = i
			all = append(all, Figure{Scenario: scenario, Case: name, Name: figure, Unit: unit, Higher: higher})
		}
		all[i].Values = append(all[i].Values, value)
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		for j := range run.Roles {
			role := &run.Roles[j]
			add := func(name, unit string, higher bool, value float64) {
				add(run.Scenario, run.Case, role.Name+" "+name, unit, higher, value)
			}
			add("throughput", "jobs/s", true, role.PerSecond)
			if role.Processes > 1 && len(role.Shares) > 0 {
				add("fairness (Jain)", "", true, role.Jain)
				add("least share", "%", true, 100*slices.Min(role.Shares))
				add("largest share", "%", false, 100*slices.Max(role.Shares))
			}
			for _, op := range operations {
				l, ok := role.Latency[op]
				if !ok {
					continue
				}
				for _, p := range []struct {
					name  string
					value float64
				}{{" p50", l.P50}, {" p90", l.P90}, {" p99", l.P99}, {" p99.9", l.P999}, {" max", l.Max}} {
					add(op+p.name, "us", false, p.value)
				}
			}
			if worst := role.worst(); worst > 0 {
				add("worst operation", "ms", false, worst/1e3)
			}
			add("longest gap", "ms", false, role.Gap)
			add("CPU per job", "us", false, role.CPUPerJob)
			add("peak memory", "MB", false, float64(role.PeakRSS)/1e6)
			if role.IdleCPU != nil {
				add("idle CPU", "ms/s", false, *role.IdleCPU)
			}
		}
		add(run.Scenario, run.Case, "database", "MB", false, float64(run.DBBytes)/1e6)
		add(run.Scenario, run.Case, "WAL, peak", "MB", false, float64(run.WALBytes)/1e6)
	}
	for i := range all {
		all[i].Median = median(all[i].Values)
	}
	return all
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// figure finds a figure.
func (r *Report) figure(scenario, name, figure string) (Figure, bool) {
	for _, f := range r.Figures {
		if f.Scenario == scenario && f.Case == name && f.Name == figure {
			return f, true
		}
	}
	return Figure{}, false
}
