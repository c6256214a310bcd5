//go:build unix

package bench

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Operations whose latency is recorded.
const (
	opPut   = "put"
	opClaim = "claim"
	opAck   = "ack"
	opWhole = "put to acked"
	opWake  = "put to woken"
	opRoom  = "ack to room"
)

var operations = []string{opPut, opClaim, opAck, opWhole, opWake, opRoom}

// maxLatency is the longest time a histogram tells from longer ones.
const maxLatency = 10 * time.Minute

// histograms are those of one goroutine, by operation: no lock is taken to record.
type histograms map[string]*hdrhistogram.Histogram

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(maxLatency), 3) }

func (h histograms) record(op string, nanos int64) {
	if h[op] == nil {
		h[op] = newHistogram()
	}
	_ = h[op].RecordValue(min(max(nanos, 1), int64(maxLatency))) // in range, so it can't fail
}

func (h histograms) merge(from histograms) {
	for op, other := range from {
		if h[op] == nil {
			h[op] = newHistogram()
		}
		h[op].Merge(other)
	}
}

// encode packs the histograms for the way to another process.
func (h histograms) encode() (map[string][]byte, error) {
	packed := map[string][]byte{}
	for op, one := range h {
		b, err := one.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return nil, fmt.Errorf("packing a histogram: %w", err)
		}
		packed[op] = b
	}
	return packed, nil
}

func decodeHistograms(packed map[string][]byte) (histograms, error) {
	h := histograms{}
	for op, b := range packed {
		one, err := hdrhistogram.Decode(b)
		if err != nil {
			return nil, fmt.Errorf("a process's histogram can't be read: %w", err)
		}
		h[op] = one
	}
	return h, nil
}

// Latency sums up the times of one operation, in microseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p99_9_us"`
	Max   float64 `json:"max_us"`
	Curve []Point `json:"curve,omitempty"` // the whole distribution, for a chart
}

// Point says that so many percent of the operations took at most so long.
type Point struct {
	Percent float64 `json:"percent"`
	Micros  float64 `json:"us"`
}

// curvePercents are denser towards the end, where it matters.
var curvePercents = []float64{1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 97, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.99, 100}

func (h histograms) latencies() map[string]Latency {
	all := map[string]Latency{}
	for op, one := range h {
		at := func(p float64) float64 { return float64(one.ValueAtPercentile(p)) / 1e3 }
		l := Latency{Count: one.TotalCount(), Mean: one.Mean() / 1e3, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(one.Max()) / 1e3}
		for _, p := range curvePercents {
			l.Curve = append(l.Curve, Point{p, at(p)})
		}
		all[op] = l
	}
	return all
}
