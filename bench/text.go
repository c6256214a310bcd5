//go:build unix

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteText writes the report as tables for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.facts() {
		fmt.Fprintf(&b, "%-15s %s\n", f[0], f[1])
	}
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n%s: %s\n", strings.ToUpper(t.Title[:1])+t.Title[1:], t.About)
		t.write(&b)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\nFAILED  %s\n", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// write aligns the cells: names to the left, numbers to the right.
func (t *table) write(b *strings.Builder) {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.isName(i) {
				line += "  " + cell + pad
			} else {
				line += "  " + pad + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// isName tells a column of names from one of numbers.
func (t *table) isName(column int) bool {
	switch t.Head[column] {
	case "case", "role", "scenario", "result", "figure", "better":
		return true
	}
	return false
}

// WriteJSON writes the whole report.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
