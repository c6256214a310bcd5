package powercut

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/localqueue/localqueue/chaos/preload"
)

// Cut is one image to make: when the power goes, and how it chooses.
type Cut struct {
	At   int // so many records have had their effect
	Way  Way
	Seed uint64
}

// Cuts chooses 2n images of a record: n right after answers, with nothing and with everything that was not synced, and n with
// a way and a moment by chance. Half of these moments are where something turns: a file is made, synced, cut or unlinked, or
// the WAL begins anew. The same seed chooses the same ones, in their order in time.
func Cuts(records []preload.Record, answers []int, n int, seed uint64) (cuts []Cut) {
	r := rand.New(rand.NewPCG(seed, 0))
	step := max(1, float64(2*len(answers))/float64(max(1, n)))
	for i := 0.0; int(i) < len(answers); i += step {
		at := answers[int(i)] + 1
		cuts = append(cuts, Cut{At: at, Way: Nothing}, Cut{At: at, Way: Everything})
	}
	turns := turningPoints(records)
	for i := range n {
		at := r.IntN(len(records) + 1)
		if i%2 == 0 && len(turns) > 0 {
			at = min(len(records), turns[r.IntN(len(turns))]+r.IntN(4))
		}
		cuts = append(cuts, Cut{At: at, Way: Ways[r.IntN(len(Ways))], Seed: r.Uint64()})
	}
	slices.SortStableFunc(cuts, func(a, b Cut) int { return cmp.Compare(a.At, b.At) })
	return cuts
}

// turningPoints are the records other than writes into the middle of a file, marks and the syncs of the WAL, of which there is
// one for each commit.
func turningPoints(records []preload.Record) (at []int) {
	for i, r := range records {
		switch r.Kind {
		case preload.Created, preload.Truncated, preload.Unlinked:
			at = append(at, i)
		case preload.Synced:
			if !isWAL(r.Name) {
				at = append(at, i)
			}
		case preload.Wrote:
			if isWAL(r.Name) && r.Offset == 0 {
				at = append(at, i)
			}
		}
	}
	return at
}

// Images makes the image of each cut. The cuts are in their order in time.
func Images(d *Disk, records []preload.Record, cuts []Cut, use func(Cut, Image)) error {
	done := 0
	for _, c := range cuts {
		for ; done < c.At; done++ {
			if err := d.Apply(records[done]); err != nil {
				return err
			}
		}
		use(c, d.Crash(c.Way, rand.New(rand.NewPCG(c.Seed, 1))))
	}
	return nil
}
