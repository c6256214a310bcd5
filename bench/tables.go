//go:build unix

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// table is a part of a report, for the terminal and the page alike.
type table struct {
	Title string
	About string
	Head  []string
	Rows  [][]string
}

// column is a figure of a role, or of a run if it begins with /.
type column struct{ head, figure string }

var (
	columnsBrief = []column{{"throughput", "throughput"}, {"fairness", "fairness (Jain)"}, {"share, least", "least share"}, {"most", "largest share"},
		{"put p50", "put p50"}, {"p99", "put p99"}, {"claim p50", "claim p50"}, {"p99", "claim p99"}, {"ack p50", "ack p50"}, {"p99", "ack p99"},
		{"whole p50", "put to acked p50"}, {"p99", "put to acked p99"}, {"worst", "worst operation"}, {"gap", "longest gap"}, {"CPU/job", "CPU per job"}}
	columnsWake = []column{{"put to woken p50", "put to woken p50"}, {"p99", "put to woken p99"}, {"max", "put to woken max"},
		{"ack to room p50", "ack to room p50"}, {"p99", "ack to room p99"}, {"max", "ack to room max"}, {"CPU while idle", "idle CPU"}}
	columnsWorker = []column{{"throughput", "throughput"}, {"CPU/job", "CPU per job"}, {"peak memory", "peak memory"}, {"gap", "longest gap"}}
	columnsFiles  = []column{{"database", "/database"}, {"WAL, peak", "/WAL, peak"}}
)

// tables are all of a report's, scenario by scenario.
func (r *Report) tables() []table {
	var all []table
	for _, s := range scenarios {
		var columns []column
		switch s.name {
		case "single":
			columns = columnsBrief[:1]
		case "wakeup":
			columns = columnsWake
		case "backlog": // the whole way of a job is the backlog's age there
			columns = slices.DeleteFunc(slices.Concat(columnsBrief, columnsFiles), func(c column) bool { return strings.HasPrefix(c.figure, opWhole) })
		case "worker":
			columns = slices.Concat(columnsWorker, columnsFiles)
		default:
			columns = slices.Concat(columnsBrief, columnsFiles)
		}
		t := r.table(s.name, columns)
		if len(t.Rows) == 0 {
			continue
		}
		t.Title, t.About = s.name, s.about
		if s.name == "single" {
			r.besideLimit(&t)
		}
		all = append(all, t)
		if s.name == "contention" {
			if p := r.pairTable(); len(p.Rows) > 0 {
				all = append(all, p)
			}
		}
	}
	return append(all, r.checksTable())
}

// table has a row for each case and role of a scenario, without the columns that stay empty.
func (r *Report) table(scenario string, columns []column) table {
	t := table{Head: []string{"case", "role"}}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	type row struct{ name, role string }
	var rows []row
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Scenario != scenario {
			continue
		}
		for j := range run.Roles {
			if k := (row{run.Case, run.Roles[j].Name}); !slices.Contains(rows, k) {
				rows = append(rows, k)
			}
		}
	}
	used := make([]bool, len(t.Head))
	for _, k := range rows {
		cells := []string{k.name, k.role}
		used[0], used[1] = true, true
		measured := false
		for _, c := range columns {
			name := k.role + " " + c.figure
			if c.figure[0] == '/' {
				name = c.figure[1:]
			}
			f, ok := r.figure(scenario, k.name, name)
			if !ok {
				cells = append(cells, "")
				continue
			}
			used[len(cells)], measured = true, measured || c.figure[0] != '/'
			cells = append(cells, valueText(f.Median, f.Unit))
		}
		if measured { // a role that only gives others something to wait for has nothing to show
			t.Rows = append(t.Rows, cells)
		}
	}
	t.keep(used)
	return t
}

// keep drops the columns that aren't used.
func (t *table) keep(used []bool) {
	pick := func(cells []string) (kept []string) {
		for i, c := range cells {
			if used[i] {
				kept = append(kept, c)
			}
		}
		return kept
	}
	t.Head = pick(t.Head)
	for i := range t.Rows {
		t.Rows[i] = pick(t.Rows[i])
	}
}

// besideLimit adds the C program's figures, and those of a bare table.
func (r *Report) besideLimit(t *table) {
	if r.Limit == nil {
		t.About += "; the limit was left out"
		return
	}
	t.Head = append(t.Head, "the limit in C", "ratio")
	for i, row := range t.Rows {
		f, _ := r.figure("single", row[0], row[1]+" throughput")
		limit := r.Limit.PerSecond[row[0]]
		ratio := "-"
		if limit > 0 {
			ratio = fmt.Sprintf("%.2f", f.Median/limit)
		}
		t.Rows[i] = append(row, valueText(limit, "jobs/s"), ratio)
	}
	for _, d := range []string{"normal", "full"} {
		if bare, ok := r.Limit.PerSecond["bare, "+d]; ok {
			t.Rows = append(t.Rows, []string{"a bare insert, " + d, "-", "-", valueText(bare, "jobs/s"), "-"})
		}
	}
}

// checksTable says what the accounting found.
func (r *Report) checksTable() table {
	t := table{Title: "checks", About: "every put was claimed and settled once, or the end of a lease explains it; the file is sound",
		Head: []string{"scenario", "runs", "puts", "claims", "acks", "delivered again", "killed", "busy errors", "result"}}
	for _, s := range scenarios {
		var runs, kills, failures int
		var a Accounting
		var busy int64
		for i := range r.Runs {
			run := &r.Runs[i]
			if run.Scenario != s.name {
				continue
			}
			runs++
			kills += run.Kills
			failures += len(run.failures())
			a.Puts, a.Claims, a.Acks, a.Redelivered = a.Puts+run.Accounting.Puts, a.Claims+run.Accounting.Claims, a.Acks+run.Accounting.Acks, a.Redelivered+run.Accounting.Redelivered
			for j := range run.Roles {
				busy += run.Roles[j].Busy
			}
		}
		if runs == 0 {
			continue
		}
		result := "ok"
		if failures > 0 {
			result = fmt.Sprintf("FAILED (%d)", failures)
		}
		t.Rows = append(t.Rows, []string{s.name, grouped(int64(runs)), grouped(a.Puts), grouped(a.Claims), grouped(a.Acks), grouped(a.Redelivered), grouped(int64(kills)), grouped(busy), result})
	}
	return t
}

// facts are the lines above a report's tables.
func (r *Report) facts() [][2]string {
	m := &r.Machine
	limit := "left out (give --limit a program built with make limit)"
	if r.Limit != nil {
		limit = "measured beside it"
	}
	return [][2]string{
		{"machine", fmt.Sprintf("%s, %d CPUs", m.CPU, m.CPUs)},
		{"system", m.System},
		{"file system", m.FileSystem},
		{"versions", fmt.Sprintf("%s, SQLite %s, commit %s", m.Go, m.SQLite, cmp.Or(m.Commit, "unknown"))},
		{"profile", string(r.Profile)},
		{"durability", r.durabilities()},
		{"the limit in C", limit},
		{"again with", r.Command},
	}
}

// durabilities lists those that were measured.
func (r *Report) durabilities() string {
	var names []string
	for i := range r.Runs {
		if d := r.Runs[i].Params.Durability; !slices.Contains(names, d) {
			names = append(names, d)
		}
	}
	text := ""
	for i, n := range names {
		if i > 0 {
			text += ", "
		}
		text += n
	}
	return text
}
