//go:build unix

package bench

import (
	"fmt"
	"io"
	"strings"
)

// Comparison is two reports side by side.
type Comparison struct {
	Before Machine    `json:"before"`
	After  Machine    `json:"after"`
	Rows   []Compared `json:"figures"`
	OnlyIn [2]int     `json:"only_in"` // figures that only the first or only the second report has
}

// Compared is one figure of both.
type Compared struct {
	Scenario string  `json:"scenario"`
	Case     string  `json:"case"`
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Before   float64 `json:"before"`
	After    float64 `json:"after"`
	Ratio    float64 `json:"ratio"`  // after / before; 0 if before is 0
	Better   string  `json:"better"` // which: before, after, or same
}

// Compare puts the figures together that two reports share.
func Compare(before, after *Report) *Comparison {
	c := &Comparison{Before: before.Machine, After: after.Machine}
	for _, b := range before.Figures {
		a, ok := after.figure(b.Scenario, b.Case, b.Name)
		if !ok {
			c.OnlyIn[0]++
			continue
		}
		row := Compared{Scenario: b.Scenario, Case: b.Case, Name: b.Name, Unit: b.Unit, Before: b.Median, After: a.Median, Better: "same"}
		if b.Median != 0 {
			row.Ratio = a.Median / b.Median
		}
		switch {
		case a.Median > b.Median == b.Higher && a.Median != b.Median:
			row.Better = "after"
		case a.Median != b.Median:
			row.Better = "before"
		}
		c.Rows = append(c.Rows, row)
	}
	c.OnlyIn[1] = len(after.Figures) - len(c.Rows)
	return c
}

// WriteText writes the comparison as a table for a terminal.
func (c *Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	t := table{Head: []string{"scenario", "case", "figure", "before", "after", "after/before", "better"}}
	for _, r := range c.Rows {
		ratio := "-"
		if r.Ratio != 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		t.Rows = append(t.Rows, []string{r.Scenario, r.Case, r.Name, valueText(r.Before, r.Unit), valueText(r.After, r.Unit), ratio, r.Better})
	}
	if c.Before != c.After {
		b.WriteString("The reports differ in more than their figures:\n")
		for _, d := range []struct{ what, before, after string }{
			{"CPU", c.Before.CPU, c.After.CPU}, {"CPUs", fmt.Sprint(c.Before.CPUs), fmt.Sprint(c.After.CPUs)},
			{"system", c.Before.System, c.After.System}, {"file system", c.Before.FileSystem, c.After.FileSystem},
			{"Go", c.Before.Go, c.After.Go}, {"SQLite", c.Before.SQLite, c.After.SQLite}, {"commit", c.Before.Commit, c.After.Commit},
		} {
			if d.before != d.after {
				fmt.Fprintf(&b, "  %s: %q, then %q\n", d.what, d.before, d.after)
			}
		}
		b.WriteByte('\n')
	}
	if len(t.Rows) == 0 {
		b.WriteString("No figure is in both reports.\n")
	} else {
		t.write(&b)
	}
	if c.OnlyIn != [2]int{} {
		fmt.Fprintf(&b, "\nFigures that are only in the first report: %d; only in the second: %d\n", c.OnlyIn[0], c.OnlyIn[1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
