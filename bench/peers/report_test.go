package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestABadCommandLineIsAUsageErrorAndMakesNothing(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown flag":       {"--fast"},
		"no time":               {"--seconds", "0"},
		"a time that isn't one": {"--seconds", "NaN"},
		"no rounds":             {"--rounds", "0"},
		"an unknown queue":      {"--only", "kafka"},
		"an unknown work":       {"--work", "sleep"},
		"an unknown setting":    {"--setting", "off"},
		"an argument":           {"now"},
		"a directory to write":  {"--out", "."},
		"nowhere to write":      {"--markdown", "go.mod/table.md"},
		"a file to work in":     {"--dir", "go.mod"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "build")
			if name != "a file to work in" {
				args = append([]string{"--dir", dir}, args...)
			}
			var stdout, stderr bytes.Buffer
			err := run(t.Context(), args, &stdout, &stderr)
			if !errors.Is(err, errUsage) || exitCode(err) != 2 {
				t.Errorf("got %v, want a usage error", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s was made all the same", dir)
			}
		})
	}
}

func TestTheProgramWritesItsTableAndItsMeasurements(t *testing.T) {
	dir := t.TempDir()
	if inMemory(dir) {
		t.Skip("the temporary directory is in memory, which the program refuses")
	}
	out, markdown := filepath.Join(dir, "new", "results.json"), filepath.Join(dir, "new", "table.md")
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"--dir", filepath.Join(dir, "build"), "--seconds", "0.02", "--rounds", "2", "--only", "backlite",
		"--work", "put,get-ack", "--setting", "normal", "--out", out, "--markdown", markdown}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	var r results
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Peers) != 2 || len(r.Runs) != 8 { // two queues, two works, two rounds
		t.Errorf("%d peers and %d runs", len(r.Peers), len(r.Runs))
	}
	table, err := os.ReadFile(markdown)
	if err != nil {
		t.Fatal(err)
	}
	if stdout.String() != string(table) {
		t.Error("the file's table isn't the printed one")
	}
	for _, want := range []string{"| localqueue ", "| backlite ", "backlite: left out, tasks are taken by its dispatcher only", "wal", "NORMAL"} {
		if !strings.Contains(string(table), want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "build", "queue-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("queues were left behind: %v, %v", left, err)
	}
}

func TestTheMedianOfTheRoundsCountsAndWhatFailedDoesNot(t *testing.T) {
	run := func(peer string, jobs int, leftOut string) runEntry {
		return runEntry{Peer: peer, Work: workPut, Setting: settingFull, measure: measure{Jobs: jobs, Seconds: 1}, LeftOut: leftOut}
	}
	r := &results{
		Peers: []peerEntry{{about: about{Name: ours}}, {about: about{Name: "slow"}}, {about: about{Name: "gone"}, LeftOut: "no such thing"}},
		Runs: []runEntry{
			run(ours, 1000, ""), run(ours, 5000, ""), run(ours, 2000, ""),
			run("slow", 100, ""), run("slow", 300, ""), run("slow", 7, "failed: broken"),
		},
	}
	text := r.markdown()
	for _, want := range []string{"| 2 000 ", "| 200 (10 ×) ", "slow: left out, failed: broken.", "gone: left out, no such thing."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestARemarkForSeveralQueuesStandsOnce(t *testing.T) {
	var n notes
	n.add("no worker", "a", "NORMAL")
	n.add("no worker", "a", "FULL")
	n.add("no worker", "b", "FULL")
	n.add("broken", "b", "NORMAL")
	if got, want := n.list(2), "\n- a, b (FULL): no worker.\n- b (NORMAL): broken.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNumbersAreShownWithThreeDigits(t *testing.T) {
	for x, want := range map[float64]string{0.5: "0.5", 12.345: "12.3", 99.96: "100", 123.4: "123", 4567: "4 570", 999_900: "1 000 000", 1_234_567: "1 230 000"} {
		if got := number(x); got != want {
			t.Errorf("number(%v) is %q, want %q", x, got, want)
		}
	}
}
