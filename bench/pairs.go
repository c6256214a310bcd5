//go:build unix

package bench

import (
	"fmt"
	"strings"
)

// pair is a case that was measured with the line and without it, in turns.
type pair struct {
	name string
	role string
}

const withoutLineSuffix = ", no line"

// pairs finds the cases of contention that have both.
func (r *Report) pairs() (all []pair) {
	for _, f := range r.Figures {
		role, ok := strings.CutSuffix(f.Name, " throughput")
		if !ok || f.Scenario != "contention" {
			continue
		}
		if _, ok := r.figure("contention", f.Case+withoutLineSuffix, f.Name); ok {
			all = append(all, pair{f.Case, role})
		}
	}
	return all
}

// ratios divides a figure with the line by the one without, pair by pair.
func (r *Report) ratios(p pair, figure string) (with, without Figure, ratio float64) {
	with, _ = r.figure("contention", p.name, p.role+" "+figure)
	without, _ = r.figure("contention", p.name+withoutLineSuffix, p.role+" "+figure)
	var each []float64
	for i := range min(len(with.Values), len(without.Values)) {
		if without.Values[i] > 0 {
			each = append(each, with.Values[i]/without.Values[i])
		}
	}
	return with, without, median(each)
}

func (r *Report) pairTable() table {
	t := table{Title: "contention, in pairs", About: "with the line between processes and without it, in turns: medians, and the median of the pairs' ratios",
		Head: []string{"case", "role", "pairs"}}
	figures := []struct{ head, figure string }{{"throughput", "throughput"}, {"fairness", "fairness (Jain)"}, {"worst operation", "worst operation"}, {"longest gap", "longest gap"}}
	for _, f := range figures {
		t.Head = append(t.Head, f.head, "no line", "ratio")
	}
	for _, p := range r.pairs() {
		tp, _, _ := r.ratios(p, "throughput")
		row := []string{p.name, p.role, fmt.Sprint(len(tp.Values))}
		for _, f := range figures {
			with, without, ratio := r.ratios(p, f.figure)
			if len(with.Values) == 0 {
				row = append(row, "-", "-", "-")
				continue
			}
			row = append(row, valueText(with.Median, with.Unit), valueText(without.Median, without.Unit), fmt.Sprintf("%.2f", ratio))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
