package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// results is the file of all measurements.
type results struct {
	Started time.Time   `json:"started"`
	Machine machine     `json:"machine"`
	Seconds float64     `json:"seconds"`
	Rounds  int         `json:"rounds"`
	Peers   []peerEntry `json:"peers"`
	Runs    []runEntry  `json:"runs"`
}

type peerEntry struct {
	about
	LeftOut string `json:"left_out,omitempty"`
}

type runEntry struct {
	Round   int     `json:"round"`
	Work    work    `json:"work"`
	Setting setting `json:"setting"`
	Peer    string  `json:"peer"`
	measure
	LeftOut string `json:"left_out,omitempty"` // the reason, when there is no figure
}

func (r runEntry) rate() float64 { return float64(r.Jobs) / r.Seconds }

func (r runEntry) summary() string {
	if r.LeftOut != "" {
		return "left out: " + r.LeftOut
	}
	text := fmt.Sprintf("%9.0f jobs/s", r.rate())
	if r.Errors > 0 {
		text += fmt.Sprintf(", %d errors, the first: %s", r.Errors, r.FirstError)
	}
	return text
}

func (r *results) save(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// cell is what the rounds say together about one peer, work and setting.
type cell struct {
	rate    float64 // the median; 0 when there is none
	errors  int
	leftOut string
}

func (r *results) cell(peer string, w work, s setting) cell {
	var (
		c     cell
		rates []float64
	)
	for _, run := range r.Runs {
		if run.Peer != peer || run.Work != w || run.Setting != s {
			continue
		}
		c.errors += run.Errors
		if run.LeftOut != "" {
			c.leftOut = run.LeftOut
			continue
		}
		rates = append(rates, run.rate())
	}
	c.rate = median(rates)
	return c
}

// inForce is what the peer's connection last answered under a setting.
func (r *results) inForce(peer string, s setting) (f inForce) {
	for _, run := range r.Runs {
		if run.Peer == peer && run.Setting == s && run.InForce.JournalMode != "" {
			f = run.InForce
		}
	}
	return f
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
