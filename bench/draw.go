//go:build unix

package bench

import (
	"fmt"
	"html/template"
	"math"

	"github.com/go-analyze/charts"
)

// chart is what one picture shows: series over labels.
type chart struct {
	Title  string
	About  string
	x      string // what the labels are
	labels []string
	series []series
	unit   string
	log    bool     // each step of the axis is ten times the one before
	top    *float64 // of the axis, if it has one
}

type series struct {
	name   string
	values []float64 // NaN where there is none
}

// smallest is where a logarithmic axis begins at the lowest: what is less is drawn there.
var smallest = map[string]float64{"us": 1, "ms": 0.01, "jobs/s": 0.1}

const (
	chartWidth  = 560
	chartHeight = 320
)

// draw makes the chart a picture for a page.
func (c *chart) draw() (template.HTML, error) {
	values := make([][]float64, len(c.series))
	names := make([]string, len(c.series))
	low, high := math.Inf(1), math.Inf(-1)
	for i, s := range c.series {
		names[i] = s.name
		for _, v := range s.values {
			if c.log {
				v = math.Log10(max(v, smallest[c.unit]))
			}
			if math.IsNaN(v) {
				v = charts.GetNullValue()
			} else {
				low, high = min(low, v), max(high, v)
			}
			values[i] = append(values[i], v)
		}
	}
	opt := charts.NewLineChartOptionWithData(values)
	opt.Theme = chartTheme
	opt.Padding = charts.NewBox(12, 8, 24, 8)
	opt.LineStrokeWidth = 2
	opt.Symbol = charts.Symbol{Shape: charts.SymbolCircle, Size: 3}
	opt.Legend = charts.LegendOption{SeriesNames: names, Offset: charts.OffsetStr{Left: charts.PositionLeft}, FontStyle: charts.NewFontStyleWithSize(11)}
	opt.XAxis.Labels = c.labels
	opt.XAxis.Title = c.x
	opt.XAxis.LabelFontStyle = charts.NewFontStyleWithSize(10)
	opt.XAxis.TitleFontStyle = charts.NewFontStyleWithSize(11)
	opt.XAxis.BoundaryGap = charts.Ptr(false)
	axis := charts.YAxisOption{Min: charts.Ptr(0.0), Max: c.top, LabelFontStyle: charts.NewFontStyleWithSize(10), SplitLineShow: charts.Ptr(true)}
	axis.ValueFormatter = func(v float64) string { return axisText(v, c.unit) }
	if c.log {
		bottom, top := math.Floor(low), math.Ceil(high)
		top = max(top, bottom+1)
		axis.Min, axis.Max, axis.LabelCount = &bottom, &top, int(top-bottom)+1
		axis.ValueFormatter = func(v float64) string { return axisText(math.Pow(10, v), c.unit) }
	}
	opt.YAxis = []charts.YAxisOption{axis}

	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight})
	if err := p.LineChart(opt); err != nil {
		return "", fmt.Errorf("the chart %q: %w", c.Title, err)
	}
	svg, err := p.Bytes()
	if err != nil {
		return "", fmt.Errorf("the chart %q: %w", c.Title, err)
	}
	return template.HTML(svg), nil //nolint:gosec // drawn here, of names that are this package's own
}

// axisText is a value on an axis: no more digits than it needs.
func axisText(v float64, unit string) string {
	switch unit {
	case "us":
		switch {
		case v < 999.5:
			return trimmed(v) + " µs"
		case v < 999.5e3:
			return trimmed(v/1e3) + " ms"
		}
		return trimmed(v/1e6) + " s"
	case "ms":
		return axisText(v*1e3, "us")
	case "jobs/s":
		if v >= 1000 {
			return trimmed(v/1e3) + " k"
		}
		return trimmed(v)
	}
	return trimmed(v) + unit
}

var chartTheme = charts.MakeTheme(charts.ThemeOption{
	AxisStrokeColor:    charts.ColorRGB(0x9a, 0xa3, 0xad),
	AxisSplitLineColor: charts.ColorRGB(0xe6, 0xe9, 0xed),
	BackgroundColor:    charts.ColorRGB(0xff, 0xff, 0xff),
	TextColor:          charts.ColorRGB(0x3c, 0x46, 0x50),
	SeriesColors: []charts.Color{ // told apart also by those who see red and green alike
		charts.ColorRGB(0x00, 0x72, 0xb2), charts.ColorRGB(0xd5, 0x5e, 0x00), charts.ColorRGB(0x00, 0x9e, 0x73),
		charts.ColorRGB(0xcc, 0x79, 0xa7), charts.ColorRGB(0xe6, 0x9f, 0x00), charts.ColorRGB(0x56, 0xb4, 0xe9),
	},
})
