//go:build unix

package bench

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFairnessIsOneForEqualSharesAndOneNthForAHog(t *testing.T) {
	for _, c := range []struct {
		done []int64
		want float64
	}{{[]int64{5, 5, 5, 5}, 1}, {[]int64{20, 0, 0, 0}, 0.25}, {[]int64{0, 0}, 0}, {[]int64{3, 1}, 0.8}} {
		var outcomes []outcome
		for _, n := range c.done {
			outcomes = append(outcomes, outcome{Done: n})
		}
		if got, _ := fairness(outcomes); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.done, got, c.want)
		}
	}
}

func TestHistogramsSurviveTheWayToTheParent(t *testing.T) {
	a, b := histograms{}, histograms{}
	for i := range int64(1000) {
		a.record(opPut, i*1000)
		b.record(opPut, (i+1000)*1000)
	}
	b.record(opAck, 5_000_000)
	all := histograms{}
	for _, h := range []histograms{a, b} {
		packed, err := h.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeHistograms(packed)
		if err != nil {
			t.Fatal(err)
		}
		all.merge(got)
	}
	l := all.latencies()
	if p := l[opPut]; p.Count != 2000 || math.Abs(p.P50-1000) > 10 || math.Abs(p.Max-1999) > 10 {
		t.Errorf("%+v", p)
	}
	if a := l[opAck]; a.Count != 1 || math.Abs(a.Max-5000) > 10 {
		t.Errorf("%+v", a)
	}
}

func TestTheLongestTimeWithoutATurnCountsBothEnds(t *testing.T) {
	var turns turns
	turns.last.Store(100)
	for _, at := range []int64{150, 160, 190} {
		turns.complete(at)
	}
	if got := turns.longest.Load(); got != 50 {
		t.Errorf("longest %d: the time before the first operation is missing", got)
	}
	turns.finish(300)
	if got := turns.longest.Load(); got != 110 {
		t.Errorf("longest %d: the time after the last operation is missing", got)
	}
}

func TestFiguresAreMediansOverTheRounds(t *testing.T) {
	r := &Report{}
	for _, v := range []float64{10, 30, 20} {
		r.Runs = append(r.Runs, Result{Scenario: "contention", Case: "1 process", Roles: []Role{{Name: roleCycle, Processes: 1, PerSecond: v}}})
	}
	r.Figures = figures(r)
	f, ok := r.figure("contention", "1 process", "cycle throughput")
	if want := (Figure{Scenario: "contention", Case: "1 process", Name: "cycle throughput", Unit: "jobs/s", Higher: true, Median: 20, Values: []float64{10, 30, 20}}); !ok || !cmp.Equal(f, want) {
		t.Error(cmp.Diff(want, f))
	}
}

func TestAComparisonSaysWhichIsBetter(t *testing.T) {
	figure := func(name string, higher bool, v float64) Figure {
		return Figure{Scenario: "s", Case: "c", Name: name, Higher: higher, Median: v}
	}
	before := &Report{Figures: []Figure{figure("speed", true, 10), figure("wait", false, 10), figure("same", true, 1), figure("gone", true, 1)}}
	after := &Report{Figures: []Figure{figure("speed", true, 20), figure("wait", false, 20), figure("same", true, 1)}}
	c := Compare(before, after)
	got := map[string]string{}
	for _, row := range c.Rows {
		got[row.Name] = row.Better
	}
	if want := map[string]string{"speed": "after", "wait": "before", "same": "same"}; !cmp.Equal(got, want) || c.OnlyIn != [2]int{1, 0} {
		t.Errorf("%v %v", cmp.Diff(want, got), c.OnlyIn)
	}
}

func TestTheLimitIsTheMedianOfTheProgramsLines(t *testing.T) {
	l := &Limit{PerSecond: map[string]float64{}, Values: map[string][]float64{}}
	if err := l.read([]byte("{\"work\":\"put\",\"durability\":\"full\",\"per_second\":12,\"n\":5}\n{\"work\":\"get+ack\",\"durability\":\"full\",\"per_second\":7.5,\"n\":5}\n" +
		"{\"work\":\"put\",\"durability\":\"full\",\"per_second\":14,\"n\":5}\n")); err != nil {
		t.Fatal(err)
	}
	if want := map[string]float64{"put, full": 13, "get+ack, full": 7.5}; !cmp.Equal(l.PerSecond, want) {
		t.Error(cmp.Diff(want, l.PerSecond))
	}
}

func TestNumbersHaveThreeDigitsAndAUnit(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{0, "us", "0"}, {1.234, "us", "1.23 µs"}, {999.7, "us", "1.00 ms"}, {12_345, "us", "12.3 ms"}, {2_500_000, "us", "2.50 s"},
		{123_456, "jobs/s", "123 000/s"}, {0.5, "jobs/s", "0.50/s"}, {2.1, "MB", "2.1 MB"}, {0.05, "MB", "50 kB"}, {0.98765, "", "0.988"},
	} {
		if got := valueText(c.v, c.unit); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}
