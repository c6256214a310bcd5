//go:build unix

package bench_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/bench"
)

// Each scenario has a test of its own, so that a planted fault shows where it is found.

func smoke(t *testing.T, scenario string) *bench.Report {
	t.Helper()
	dir := t.TempDir()
	report, err := bench.Run(t.Context(), bench.Config{Profile: bench.Smoke, Scenarios: []string{scenario}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("the run left %v behind (%v)", left, err)
	}
	for _, run := range report.Runs {
		if !run.Accounting.OK() || len(run.Roles) == 0 {
			t.Errorf("%s, %s: %+v, %d roles", run.Scenario, run.Case, run.Accounting, len(run.Roles))
		}
	}
	return report
}

func TestSmokeSingle(t *testing.T) {
	report := smoke(t, "single")
	for _, run := range report.Runs {
		if a := run.Accounting; a.Acks == 0 || run.Roles[0].PerSecond <= 0 {
			t.Errorf("%s: %d acks, %v jobs/s", run.Case, a.Acks, run.Roles[0].PerSecond)
		}
	}
}

func TestSmokeContention(t *testing.T) {
	report := smoke(t, "contention")
	if len(report.Runs) != 2 {
		t.Fatalf("%d runs", len(report.Runs))
	}
	for _, run := range report.Runs {
		r := run.Roles[0]
		sum := 0.0
		for _, share := range r.Shares {
			sum += share
		}
		if len(r.Shares) != run.Params.Processes || sum < 0.999 || sum > 1.001 || r.Jain <= 0 || r.Jain > 1.0001 {
			t.Errorf("%s: shares %v, fairness %v", run.Case, r.Shares, r.Jain)
		}
		for _, op := range []string{"put", "claim", "ack", "put to acked"} {
			if l := r.Latency[op]; l.Count == 0 || l.P50 <= 0 || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max {
				t.Errorf("%s: %s: %+v", run.Case, op, l)
			}
		}
		if r.Gap <= 0 || r.CPUPerJob <= 0 || r.PeakRSS <= 0 || run.DBBytes <= 0 || run.WALBytes <= 0 {
			t.Errorf("%s: %+v", run.Case, run)
		}
	}
}

func TestSmokeDurability(t *testing.T) { smoke(t, "durability") }

func TestSmokePayload(t *testing.T) { smoke(t, "payload") }

func TestSmokeBatch(t *testing.T) { smoke(t, "batch") }

func TestSmokeBacklog(t *testing.T) {
	report := smoke(t, "backlog")
	states := map[string]bool{}
	for _, run := range report.Runs {
		states[run.Params.State] = true
	}
	if want := map[string]bool{"ready": true, "delayed": true, "acked": true, "failed": true}; !cmp.Equal(states, want) {
		t.Error(cmp.Diff(want, states))
	}
}

func TestSmokeWakeup(t *testing.T) {
	report := smoke(t, "wakeup")
	var ops []string
	for _, run := range report.Runs {
		for _, r := range run.Roles {
			for op := range r.Latency {
				ops = append(ops, op)
			}
			if r.Name == "waiter" && r.IdleCPU == nil {
				t.Error("no figure for what waiting costs")
			}
		}
	}
	if !slices.Contains(ops, "put to woken") || !slices.Contains(ops, "ack to room") {
		t.Errorf("latencies: %v", ops)
	}
}

func TestSmokeWorker(t *testing.T) {
	report := smoke(t, "worker")
	if a := report.Runs[0].Accounting; a.Acks != 1000 {
		t.Errorf("%d acks", a.Acks)
	}
}

func TestSmokeKill(t *testing.T) {
	report := smoke(t, "kill")
	if run := report.Runs[0]; run.Kills == 0 || run.Accounting.Acks == 0 {
		t.Errorf("%d kills, %+v", run.Kills, run.Accounting)
	}
}

func TestAReportIsReadBackAndPrinted(t *testing.T) {
	report, err := bench.Run(t.Context(), bench.Config{Profile: bench.Smoke, Scenarios: []string{"contention"}, Count: 20,
		Processes: []int{1, 2}, Goroutines: 2, Pairs: 1, Dir: t.TempDir(), Repeat: []string{"localqueue", "bench", "<&>"}})
	if err != nil {
		t.Fatal(err)
	}
	var doc, text, page bytes.Buffer
	for _, err := range []error{report.WriteJSON(&doc), report.WriteText(&text), report.WriteHTML(&page)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var back bench.Report
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report.Figures, back.Figures); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"2 processes of 2, no line", "SQLite 3.", "CPUs", "left out"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text doesn't say %q:\n%s", want, &text)
		}
	}
	if n := strings.Count(page.String(), "<svg"); n < 5 {
		t.Errorf("%d charts", n)
	}
	if strings.Contains(page.String(), "<&>") || !strings.Contains(page.String(), "&lt;&amp;&gt;") {
		t.Error("the page doesn't escape")
	}
	for _, forbidden := range []string{"<script", "src=", "@import", "url(http"} {
		if strings.Contains(page.String(), forbidden) {
			t.Errorf("the page isn't by itself: %s", forbidden)
		}
	}
	c := bench.Compare(report, &back)
	for _, row := range c.Rows {
		if row.Better != "same" || row.Before != row.After {
			t.Errorf("compared with itself: %+v", row)
		}
	}
}

func TestTheLimitStandsBesideTheFiguresOfOneProcess(t *testing.T) {
	dir := t.TempDir()
	limit := filepath.Join(dir, "limit")
	script := `#!/bin/sh
for work in put get+ack bare; do echo "{\"work\":\"$work\",\"durability\":\"$4\",\"per_second\":1000,\"n\":$3}"; done
`
	if err := errors.Join(os.WriteFile(limit, []byte(script), 0o700), os.MkdirAll(filepath.Join(dir, "sql", "migrations"), 0o700)); err != nil {
		t.Fatal(err)
	}
	report, err := bench.Run(t.Context(), bench.Config{Profile: bench.Smoke, Scenarios: []string{"batch"}, Count: 5, Dir: dir,
		Limit: limit, LimitSQL: filepath.Join(dir, "sql")})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"put, normal", "get+ack, full", "1 000/s", "a bare insert, full"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text doesn't say %q:\n%s", want, &text)
		}
	}
}

func TestAProcessThatCrashesIsReportedWithWhatItSaid(t *testing.T) {
	dir := t.TempDir()
	_, err := bench.Run(t.Context(), bench.Config{Profile: bench.Smoke, Scenarios: []string{"contention"}, Dir: dir,
		Command: []string{"sh", "-c", "echo out of luck >&2; echo and more >&2; exit 3"}})
	process := (*bench.ProcessError)(nil)
	if !errors.As(err, &process) || process.Said != "out of luck\nand more" || !strings.Contains(err.Error(), "exit status 3: out of luck") {
		t.Errorf("error %v, %+v", err, process)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
