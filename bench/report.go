//go:build unix

package bench

import "time"

// Report is all that a run has found.
type Report struct {
	Machine  Machine       `json:"machine"`
	Profile  Profile       `json:"profile"`
	Command  string        `json:"command"` // repeats the run
	Started  time.Time     `json:"started"`
	Took     time.Duration `json:"took_ns"`
	Limit    *Limit        `json:"limit"` // null: it was left out
	Runs     []Result      `json:"runs"`
	Figures  []Figure      `json:"figures"`
	Failures []string      `json:"failures,omitempty"` // why the run doesn't count
}

// Result is one measurement.
type Result struct {
	Scenario   string     `json:"scenario"`
	Case       string     `json:"case"` // what tells it from the other runs of the scenario
	Round      int        `json:"round"`
	Params     Params     `json:"params"`
	Seconds    float64    `json:"seconds"`
	Roles      []Role     `json:"roles"`
	DBBytes    int64      `json:"db_bytes"`       // at the end
	WALBytes   int64      `json:"wal_peak_bytes"` // the largest that was seen
	Kills      int        `json:"kills,omitempty"`
	Accounting Accounting `json:"accounting"`
}

// Params are what the run was made with.
type Params struct {
	Processes  int    `json:"processes"`
	Goroutines int    `json:"goroutines"`
	Payload    int    `json:"payload_bytes"`
	Batch      int    `json:"batch,omitempty"`
	Durability string `json:"durability"`
	Line       bool   `json:"line"`
	Backlog    int    `json:"backlog,omitempty"`
	State      string `json:"backlog_state,omitempty"`
}

// Role sums up the processes that did the same.
type Role struct {
	Name      string             `json:"name"`
	Processes int                `json:"processes"`
	Done      int64              `json:"done"`       // rounds of its work, completed within the time
	PerSecond float64            `json:"per_second"` // jobs
	Latency   map[string]Latency `json:"latency"`    // by operation
	Jain      float64            `json:"jain"`       // 1: all processes did the same number of rounds; 1/n: one did all
	Shares    []float64          `json:"shares"`     // of each process, 1 together
	Gap       float64            `json:"longest_gap_ms"`
	CPUPerJob float64            `json:"cpu_us_per_job"`
	PeakRSS   int64              `json:"peak_rss_bytes"`
	Busy      int64              `json:"busy_errors,omitempty"`
	Lost      int64              `json:"leases_lost,omitempty"`
	IdleCPU   *float64           `json:"idle_cpu_ms_per_s,omitempty"`
}

// worst is the longest single operation of a role that isn't made of others, in microseconds.
func (r *Role) worst() (us float64) {
	for _, op := range []string{opPut, opClaim, opAck} {
		us = max(us, r.Latency[op].Max)
	}
	return us
}

// summarise puts the outcomes of one role's processes together.
func summarise(name string, outcomes []outcome, window time.Duration) (Role, error) {
	r := Role{Name: name, Processes: len(outcomes)}
	all := histograms{}
	var jobs int64
	var cpu, longest, elapsed time.Duration
	var idle, idleCPU time.Duration
	for _, o := range outcomes {
		h, err := decodeHistograms(o.Histograms)
		if err != nil {
			return r, err
		}
		all.merge(h)
		r.Done += o.Done
		r.Busy += o.Busy
		r.Lost += o.Lost
		jobs += o.Jobs
		cpu += o.CPU
		idle, idleCPU = idle+o.Idle, idleCPU+o.IdleCPU
		longest, elapsed = max(longest, o.Gap), max(elapsed, o.Elapsed)
		r.PeakRSS = max(r.PeakRSS, o.PeakRSS)
	}
	if window > 0 {
		elapsed = window
	}
	r.Latency = all.latencies()
	r.Jain, r.Shares = fairness(outcomes)
	r.Gap = longest.Seconds() * 1e3
	if elapsed > 0 {
		r.PerSecond = float64(jobs) / elapsed.Seconds()
	}
	if jobs > 0 {
		r.CPUPerJob = cpu.Seconds() * 1e6 / float64(jobs)
	}
	if idle > 0 {
		perSecond := idleCPU.Seconds() * 1e3 / idle.Seconds()
		r.IdleCPU = &perSecond
	}
	return r, nil
}

// fairness is Jain's index of what the processes have done, and the share of each.
func fairness(outcomes []outcome) (index float64, shares []float64) {
	var sum, squares float64
	for _, o := range outcomes {
		x := float64(o.Done)
		sum += x
		squares += x * x
	}
	shares = make([]float64, len(outcomes))
	if sum == 0 {
		return 0, shares // nobody did anything
	}
	for i, o := range outcomes {
		shares[i] = float64(o.Done) / sum
	}
	return sum * sum / (float64(len(outcomes)) * squares), shares
}
