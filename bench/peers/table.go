package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

var settingTitles = map[setting]string{
	settingNormal: "NORMAL", settingFull: "FULL", settingRecommended: "as recommended",
}

// markdown is the report: a table per work, what was left out, and the settings in force. Its columns are padded, so that
// it reads as well in a terminal.
func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. %s. %s s per measurement, %s, %d-byte payloads.\n",
		r.Started.Format("2006-01-02"), r.Machine, number(r.Seconds), rounds(r.Rounds), payloadBytes)
	b.WriteString("\nJobs per second; in brackets how many times as many " + ours + " does under the same setting.\n")
	for _, w := range works {
		r.workTable(&b, w.work, w.title)
	}
	r.forceTable(&b)
	b.WriteString("\n### What differs\n\n")
	for _, p := range r.Peers {
		fmt.Fprintf(&b, "- %s: %s.\n", p.Name, p.Differs)
	}
	return b.String()
}

func rounds(n int) string {
	if n == 1 {
		return "one round"
	}
	return fmt.Sprintf("medians of %d rounds in turns", n)
}

func (r *results) workTable(b *strings.Builder, w work, title string) {
	var columns []setting
	for _, s := range settings {
		if r.measured(w, s) {
			columns = append(columns, s)
		}
	}
	if len(columns) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s%s\n\n", strings.ToUpper(title[:1]), title[1:])
	rows := [][]string{{"queue"}}
	for _, s := range columns {
		rows[0] = append(rows[0], settingTitles[s])
	}
	var notes notes
	for _, p := range r.Peers {
		row := []string{p.Name}
		for _, s := range columns {
			c := r.cell(p.Name, w, s)
			row = append(row, r.figure(c, p.Name, w, s))
			if c.leftOut != "" {
				notes.add("left out, "+c.leftOut, p.Name, settingTitles[s])
			}
			if c.errors > 0 {
				notes.add("operations that failed, and aren't counted", p.Name, fmt.Sprintf("%s %d", settingTitles[s], c.errors))
			}
			if p.LeftOut != "" {
				notes.add("left out, "+p.LeftOut, p.Name, settingTitles[s])
			}
		}
		rows = append(rows, row)
	}
	writeTable(b, rows)
	b.WriteString(notes.list(len(columns)))
}

func (r *results) measured(w work, s setting) bool {
	for _, run := range r.Runs {
		if run.Work == w && run.Setting == s {
			return true
		}
	}
	return false
}

func (r *results) figure(c cell, peer string, w work, s setting) string {
	if c.rate == 0 {
		return "–"
	}
	own := r.cell(ours, w, s).rate
	if peer == ours || own == 0 {
		return number(c.rate)
	}
	return fmt.Sprintf("%s (%s)", number(c.rate), ratio(own/c.rate))
}

func (r *results) forceTable(b *strings.Builder) {
	b.WriteString("\n### Versions, and the settings in force\n\n")
	rows := [][]string{{"queue", "version", "driver", "SQLite", "setting", "journal_mode", "synchronous", "page_size", "busy_timeout", "a job that is done"}}
	var notes notes
	for _, p := range r.Peers {
		for _, s := range settings {
			f := r.inForce(p.Name, s)
			if f.JournalMode == "" {
				continue
			}
			rows = append(rows, []string{p.Name, p.Version, p.Driver, f.SQLite, settingTitles[s], f.JournalMode, f.Synchronous, f.PageSize, f.BusyTimeout, p.Ack})
			if f.Note != "" {
				notes.add(f.Note, p.Name, settingTitles[s])
			}
		}
	}
	writeTable(b, rows)
	b.WriteString(notes.list(len(settings)))
}

// writeTable writes a Markdown table whose first row is the head.
func writeTable(b *strings.Builder, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			width[i] = max(width[i], utf8.RuneCountInString(text))
		}
	}
	line := func(row []string) {
		for i, text := range row {
			fmt.Fprintf(b, "| %s%s ", text, strings.Repeat(" ", width[i]-utf8.RuneCountInString(text)))
		}
		b.WriteString("|\n")
	}
	line(rows[0])
	for _, n := range width {
		b.WriteString("|" + strings.Repeat("-", n+2))
	}
	b.WriteString("|\n")
	for _, row := range rows[1:] {
		line(row)
	}
}

// number shows three digits that mean something, with a space between thousands.
func number(x float64) string {
	if x < 100 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	digits := strconv.FormatFloat(math.Round(x/unit)*unit, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

func ratio(x float64) string {
	if x >= 10 {
		return number(math.Round(x)) + " ×"
	}
	return strconv.FormatFloat(x, 'g', 2, 64) + " ×"
}
