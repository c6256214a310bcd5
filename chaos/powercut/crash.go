package powercut

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// sector is what a disk writes whole or not at all, in bytes.
const sector = 512

// Image is what a power cut has left of the directory: the files' bytes by their names.
type Image map[string][]byte

// Write makes the image's files in dir, which exists and is empty.
func (m Image) Write(dir string) error {
	for name, data := range m {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Way is how a power cut chooses among what was not synced.
type Way string

// The ways. In each a sector of a file is as it was after one of its own unsynced writes, or before all of them: that is what
// a page cache, written back in any order at any time, can leave. A truncation is done as a whole or not at all, and what is
// written later where it cut needs it: a journaled file system allocates there anew.
const (
	Nothing    Way = "nothing"    // of it survives
	Everything Way = "everything" // of it survives
	Sectors    Way = "sectors"    // each sector by itself
	Blocks     Way = "blocks"     // each block of 4096 bytes by itself
	Writes     Way = "writes"     // each write as a whole
	Beginning  Way = "beginning"  // the first ones, and some sectors of one more
	End        Way = "end"        // the last ones, and some sectors of one before: all out of order
)

// Ways are those that leave something to chance.
var Ways = []Way{Sectors, Blocks, Writes, Beginning, End}

// Crash cuts the power. The Disk itself goes on.
func (d *Disk) Crash(way Way, r *rand.Rand) Image {
	names := maps.Clone(d.names)
	for _, e := range d.entries[:d.survivingEntries(way, r)] {
		e.apply(names)
	}
	m := Image{}
	for _, name := range slices.Sorted(maps.Keys(names)) { // in an order, so that a seed repeats an image
		m[name] = names[name].crash(way, r)
	}
	return m
}

// survivingEntries is how many of the directory's changes survive: a journaled file system keeps them in their order.
func (d *Disk) survivingEntries(way Way, r *rand.Rand) int {
	switch way {
	case Nothing:
		return 0
	case Everything:
		return len(d.entries)
	}
	return r.IntN(len(d.entries) + 1)
}

// lots decides for one file which change survives where.
type lots struct {
	way   Way
	r     *rand.Rand
	share float64 // of sectors, blocks or writes that survive
	cut   int     // the torn change of Beginning and End
	drawn map[[2]int64]bool
}

func (f *file) crash(way Way, r *rand.Rand) []byte {
	if len(f.pending) == 0 || way == Nothing {
		return f.synced
	}
	l := &lots{way: way, r: r, drawn: map[[2]int64]bool{}}
	if way != Everything {
		l.share, l.cut = r.Float64(), r.IntN(len(f.pending)+1)
	}
	size, most := int64(len(f.synced)), int64(len(f.synced))
	for _, c := range f.pending {
		most = max(most, c.end())
	}
	all, kept, keptSize := resized(f.synced, most), resized(f.synced, most), size
	lost, reach := false, most // after a truncation that is lost, what lies beyond it stays as it is
	for i, c := range f.pending {
		c.applyTo(all)
		size = c.sizeAfter(size)
		if c.truncates {
			if lost = lost || !l.survives(i, -1); lost {
				reach = min(reach, c.offset/sector*sector)
			} else {
				c.applyTo(kept)
				keptSize = size
			}
			continue
		}
		if !lost && l.survives(i, -1) {
			keptSize = size
		}
		for s := c.offset / sector; s*sector < min(c.end(), reach); s++ {
			if l.survives(i, s) {
				// The sector as it is after this change, with what the ones before it did there.
				from, to := s*sector, min((s+1)*sector, most)
				copy(kept[from:to], all[from:to])
			}
		}
	}
	return kept[:keptSize:keptSize]
}

// survives decides whether the state of a sector after the i-th change is on the disk; -1 stands for the file's size.
func (l *lots) survives(i int, s int64) bool {
	switch l.way {
	case Everything:
		return true
	case Writes:
		return l.draw(int64(i), 0)
	case Blocks:
		return l.draw(int64(i), s*sector>>12)
	case Beginning:
		return i < l.cut || i == l.cut && l.draw(int64(i), s)
	case End:
		return i > l.cut || i == l.cut && l.draw(int64(i), s)
	}
	return l.draw(int64(i), s)
}

func (l *lots) draw(change, where int64) bool {
	key := [2]int64{change, where}
	won, ok := l.drawn[key]
	if !ok {
		won = l.r.Float64() < l.share
		l.drawn[key] = won
	}
	return won
}
