//go:build unix

package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Numbers as people read them: three digits, and a unit that fits.

func countText(v float64) string {
	switch {
	case v >= 1000:
		return grouped(int64(rounded(v)))
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// rounded keeps three digits.
func rounded(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2)
	return math.Round(v/unit) * unit
}

// grouped sets thousands apart.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// microsText is a time given in microseconds.
func microsText(us float64) string {
	switch {
	case us == 0:
		return "0"
	case us < 1:
		return "<1 µs"
	case us < 999.5:
		return shortNumber(us) + " µs"
	case us < 999.5e3:
		return shortNumber(us/1e3) + " ms"
	}
	return shortNumber(us/1e6) + " s"
}

func shortNumber(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func bytesText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return trimmed(float64(n)/1e3) + " kB"
	}
	return trimmed(float64(n)/1e6) + " MB"
}

func trimmed(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// valueText is a figure with its unit.
func valueText(v float64, unit string) string {
	switch unit {
	case "us":
		return microsText(v)
	case "ms":
		return microsText(v * 1e3)
	case "MB":
		return bytesText(int64(v * 1e6))
	case "jobs/s":
		return countText(v) + "/s"
	case "":
		return fmt.Sprintf("%.3f", v)
	}
	return shortNumber(v) + " " + unit
}
