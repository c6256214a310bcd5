//go:build unix

package bench

import "time"

const (
	defaultPayload = 128 // bytes
	pairDuration   = 10 * time.Second
)

// size is what a profile measures.
type size struct {
	processes []int
	duration  time.Duration // of a run that goes by time
	rounds    int
	single    int           // operations of one process
	most      time.Duration // of a run that goes by a count
	backlog   []int
	claims    int // beside each backlog
	wakes     int
	idle      time.Duration
	payloads  []int
	batches   []int
	worker    int // jobs
	kill      time.Duration
	killEvery time.Duration
}

var profiles = map[Profile]size{
	Smoke: {
		processes: []int{1, 4}, duration: 400 * time.Millisecond, rounds: 1, single: 500, most: 2 * time.Second,
		backlog: []int{1000}, claims: 200, wakes: 40, idle: 300 * time.Millisecond,
		payloads: []int{100, 100_000}, batches: []int{1, 100}, worker: 1000,
		kill: 1500 * time.Millisecond, killEvery: 250 * time.Millisecond,
	},
	Standard: {
		processes: []int{1, 2, 4, 8, 16, 32}, duration: 5 * time.Second, rounds: 1, single: 20_000, most: 20 * time.Second,
		backlog: []int{1000, 10_000, 100_000}, claims: 5000, wakes: 500, idle: 2 * time.Second,
		payloads: []int{100, 1000, 10_000, 100_000, 1_000_000}, batches: []int{1, 10, 100, 1000}, worker: 50_000,
		kill: 10 * time.Second, killEvery: 300 * time.Millisecond,
	},
	Full: {
		processes: []int{1, 2, 4, 8, 16, 32}, duration: 10 * time.Second, rounds: 3, single: 50_000, most: time.Minute,
		backlog: []int{1000, 10_000, 100_000, 1_000_000}, claims: 10_000, wakes: 2000, idle: 5 * time.Second,
		payloads: []int{100, 1000, 10_000, 100_000, 1_000_000}, batches: []int{1, 3, 10, 30, 100, 300, 1000}, worker: 200_000,
		kill: 30 * time.Second, killEvery: 300 * time.Millisecond,
	},
}
