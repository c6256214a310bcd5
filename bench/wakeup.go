//go:build unix

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// wakePoll is the poll that the receivers of this scenario fall back on. It is so slow that a wake which the poll brought
// can't be mistaken for one that the doorbell did.
const (
	wakePoll     = 2 * time.Second
	wakePause    = 10 * time.Millisecond
	wakePatience = 5 * time.Second       // beyond what the run should take: if nobody is woken, it needn't be long
	wakeBound    = 20 * time.Millisecond // for the median; generous: it is there to find a doorbell that doesn't ring
)

func wakeup(c *Config, s size) []plan {
	n := s.wakes
	if c.Count > 0 {
		n = c.Count
	}
	one := *c
	one.Goroutines = 1
	seldom := func(t *task) {
		t.Count, t.Duration = n, s.idle+2*time.Duration(n)*wakePause+wakePatience // whichever comes first
		t.Poll, t.Pause = wakePoll, wakePause
	}
	put := one.basic("put to get", rolePacer, 1)
	put.tasks = append(put.tasks, one.basic("", roleWaiter, 1).tasks...)
	put.params.Processes = 2
	put.each(seldom).each(func(t *task) { t.Idle = s.idle })
	put.after = putToGet

	room := one.basic("ack to put", roleCrowder, 1)
	room.tasks = append(room.tasks, one.basic("", roleMaker, 1).tasks...)
	room.params.Processes = 2
	room.each(seldom).each(func(t *task) { t.MaxPending = 1 })
	room.after = ackToPut
	return []plan{put, room}
}

// putToGet is the time from Put's return in one process to Get's in the other. A receiver can be told while the producer
// is still on its way out of Put: that is no time at all.
func putToGet(b *bed, into *found) error {
	puts := map[int64]int64{}
	h := histograms{}
	for _, want := range []event{evPut, evClaim} {
		for _, path := range b.journals {
			err := readJournal(path, func(r record) {
				switch {
				case r.event != want:
				case want == evPut:
					puts[r.id] = r.at
				default:
					if at, ok := puts[r.id]; ok {
						h.record(opWake, r.at-at)
					}
				}
			})
			if err != nil {
				return err
			}
		}
	}
	into.latencies[roleWaiter] = h
	return nil
}

// ackToPut is the time from an Ack's return to that of the Put which had waited for it: with room for one job only, the
// two alternate.
func ackToPut(b *bed, into *found) error {
	var puts, acks []record
	for _, path := range b.journals {
		err := readJournal(path, func(r record) {
			switch r.event {
			case evPut:
				puts = append(puts, r)
			case evAck:
				acks = append(acks, r)
			}
		})
		if err != nil {
			return err
		}
	}
	byID := func(x, y record) int { return cmp.Compare(x.id, y.id) }
	slices.SortFunc(puts, byID)
	slices.SortFunc(acks, byID)
	h := histograms{}
	for i := range min(len(acks), len(puts)-1) {
		h.record(opRoom, puts[i+1].at-acks[i].at)
	}
	into.latencies[roleCrowder] = h
	return nil
}

// checkWakes says what is wrong with a run of this scenario.
func checkWakes(run *Result) error {
	for _, r := range run.Roles {
		for _, op := range []string{opWake, opRoom} {
			l, ok := r.Latency[op]
			if bound := float64(wakeBound.Microseconds()); ok && l.P50 > bound {
				return fmt.Errorf("half of the waiting calls came back later than %.0f ms after their reason was gone: they weren't woken, they looked by themselves", l.P50/1e3)
			}
		}
	}
	return nil
}
