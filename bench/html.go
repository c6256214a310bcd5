//go:build unix

package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed report.html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("report").Parse(pageText))

// page is what the template shows.
type page struct {
	Title    string
	Date     string
	Took     string
	Facts    [][2]string
	Failures []string
	Parts    []pagePart
}

type pagePart struct {
	Title   string
	About   string
	Charts  []picture
	Tables  []htmlTable
	Details htmlTable // every latency, for those who want it
}

type picture struct {
	Title, About string
	SVG          template.HTML
}

// htmlTable knows which cells are numbers.
type htmlTable struct {
	Title string
	Head  []cell
	Rows  [][]cell
}

type cell struct {
	Text   string
	Number bool
	Bad    bool
}

// WriteHTML writes the report as one page that needs nothing else, no network either.
func (r *Report) WriteHTML(w io.Writer) error {
	p := page{Title: "localqueue benchmark", Date: r.Started.UTC().Format("2006-01-02 15:04 UTC"), Took: r.Took.Round(1e9).String(),
		Facts: r.facts(), Failures: r.Failures}
	for _, t := range r.tables() {
		if t.Title == "contention, in pairs" {
			part := &p.Parts[len(p.Parts)-1]
			part.Tables = append(part.Tables, t.html("In pairs: "+t.About))
			continue
		}
		part := pagePart{Title: strings.ToUpper(t.Title[:1]) + t.Title[1:], About: t.About, Tables: []htmlTable{t.html("")}}
		for _, c := range r.charts(t.Title) {
			svg, err := c.draw()
			if err != nil {
				return err
			}
			part.Charts = append(part.Charts, picture{c.Title, c.About, svg})
		}
		details := r.latencyTable(t.Title)
		if len(details.Rows) > 0 {
			part.Details = details.html("")
		}
		p.Parts = append(p.Parts, part)
	}
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("writing the report's page: %w", err)
	}
	return nil
}

func (t *table) html(title string) htmlTable {
	h := htmlTable{Title: title}
	for i, text := range t.Head {
		h.Head = append(h.Head, cell{Text: text, Number: !t.isName(i)})
	}
	for _, row := range t.Rows {
		var cells []cell
		for i, text := range row {
			cells = append(cells, cell{Text: text, Number: !t.isName(i), Bad: strings.HasPrefix(text, "FAILED")})
		}
		h.Rows = append(h.Rows, cells)
	}
	return h
}

// latencyTable has all percentiles of all operations of a scenario.
func (r *Report) latencyTable(scenario string) table {
	t := table{Head: []string{"case", "role", "figure", "p50", "p90", "p99", "p99.9", "max"}}
	seen := map[string]bool{}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Scenario != scenario || seen[run.Case] {
			continue
		}
		seen[run.Case] = true
		for j := range run.Roles {
			role := run.Roles[j].Name
			for _, op := range operations {
				row := []string{run.Case, role, op}
				for _, p := range []string{"p50", "p90", "p99", "p99.9", "max"} {
					if f, ok := r.figure(scenario, run.Case, role+" "+op+" "+p); ok {
						row = append(row, valueText(f.Median, f.Unit))
					}
				}
				if len(row) == len(t.Head) {
					t.Rows = append(t.Rows, row)
				}
			}
		}
	}
	return t
}
