package powercut

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/chaos/preload"
)

// The records of these tests are made by hand. Inode 1 is f's, unless they say otherwise.

func created(name string, inode uint64) preload.Record {
	return preload.Record{Kind: preload.Created, Name: name, Inode: inode}
}

func wrote(inode uint64, offset int64, data []byte) preload.Record {
	return preload.Record{Kind: preload.Wrote, Name: "f", Inode: inode, Offset: offset, Data: data}
}

func truncated(size int64) preload.Record {
	return preload.Record{Kind: preload.Truncated, Name: "f", Inode: 1, Offset: size}
}

var (
	unlinked        = preload.Record{Kind: preload.Unlinked, Name: "f"}
	syncedFile      = preload.Record{Kind: preload.Synced, Name: "f", Inode: 1}
	syncedDirectory = preload.Record{Kind: preload.Synced, Name: ".", Inode: 99}
	text            = func(s string) []byte { return []byte(s) }
	sectors         = func(letters string) []byte { // a sector of each letter
		var b []byte
		for i := range letters {
			b = append(b, bytes.Repeat(text(letters[i:i+1]), sector)...)
		}
		return b
	}
)

func diskAfter(t *testing.T, records ...preload.Record) *Disk {
	t.Helper()
	d := NewDisk(nil)
	for _, r := range records {
		if err := d.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestOfWhatIsNotSyncedNothingOrEverythingSurvives(t *testing.T) {
	start := []preload.Record{created("f", 1), wrote(1, 0, text("one")), syncedFile, syncedDirectory}
	for name, c := range map[string]struct {
		then                []preload.Record
		nothing, everything Image
	}{
		"all synced":                {nil, Image{"f": text("one")}, Image{"f": text("one")}},
		"a write":                   {[]preload.Record{wrote(1, 2, text("ly"))}, Image{"f": text("one")}, Image{"f": text("only")}},
		"a write beyond the end":    {[]preload.Record{wrote(1, 5, text("x"))}, Image{"f": text("one")}, Image{"f": text("one\x00\x00x")}},
		"a write, synced":           {[]preload.Record{wrote(1, 2, text("ly")), syncedFile}, Image{"f": text("only")}, Image{"f": text("only")}},
		"a truncation":              {[]preload.Record{truncated(1)}, Image{"f": text("one")}, Image{"f": text("o")}},
		"a truncation to more":      {[]preload.Record{truncated(4)}, Image{"f": text("one")}, Image{"f": text("one\x00")}},
		"cut off, then grown again": {[]preload.Record{truncated(1), wrote(1, 2, text("x"))}, Image{"f": text("one")}, Image{"f": text("o\x00x")}},
		"the same, synced":          {[]preload.Record{truncated(1), wrote(1, 2, text("x")), syncedFile}, Image{"f": text("o\x00x")}, Image{"f": text("o\x00x")}},
		"a new file":                {[]preload.Record{created("g", 2), wrote(2, 0, text("new"))}, Image{"f": text("one")}, Image{"f": text("one"), "g": text("new")}},
		"a new file, only its name synced": {[]preload.Record{created("g", 2), wrote(2, 0, text("new")), syncedDirectory},
			Image{"f": text("one"), "g": nil}, Image{"f": text("one"), "g": text("new")}},
		"an unlinked file":         {[]preload.Record{unlinked}, Image{"f": text("one")}, Image{}},
		"an unlinked file, synced": {[]preload.Record{unlinked, syncedDirectory}, Image{}, Image{}},
		"a file in its place, with its inode's number": {[]preload.Record{unlinked, created("f", 1), wrote(1, 0, text("two")), syncedFile},
			Image{"f": text("one")}, Image{"f": text("two")}},
		"a write to what is unlinked": {[]preload.Record{unlinked, created("f", 2), wrote(1, 0, text("xxx")), syncedFile}, Image{"f": text("xxx")}, Image{"f": nil}},
		"the shared memory":           {[]preload.Record{created("f-shm", 3), syncedDirectory}, Image{"f": text("one")}, Image{"f": text("one")}},
	} {
		t.Run(name, func(t *testing.T) {
			d := diskAfter(t, append(start, c.then...)...)
			if diff := cmp.Diff(c.nothing, d.Crash(Nothing, nil)); diff != "" {
				t.Errorf("nothing (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.everything, d.Crash(Everything, nil)); diff != "" {
				t.Errorf("everything (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.nothing, d.Crash(Nothing, nil)); diff != "" {
				t.Errorf("a crash has changed the disk (-want +got):\n%s", diff)
			}
		})
	}
}

// The file has one state of three for each of its two sectors, and a size. Each way must come upon just the combinations
// that it allows.
func TestEachWayLeavesWhatItSays(t *testing.T) {
	records := []preload.Record{created("f", 1), wrote(1, 0, sectors("aa")), syncedFile, syncedDirectory,
		wrote(1, 0, sectors("bb")), wrote(1, 0, sectors("cc"))}
	for way, want := range map[Way]string{
		Sectors:   "aa ab ac ba bb bc ca cb cc",
		Blocks:    "aa bb cc",
		Writes:    "aa bb cc",
		Beginning: "aa ab ba bb bc cb cc",
		End:       "aa ac ca cc", // a torn first change is hidden by the second; a torn second one stands on what was synced
	} {
		got := everyOutcome(t, diskAfter(t, records...), way)
		if diff := cmp.Diff(fields(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", way, diff)
		}
	}
}

func TestASizeSurvivesWithoutItsDataAndDataWithoutItsSize(t *testing.T) {
	d := diskAfter(t, created("f", 1), wrote(1, 0, sectors("a")), syncedFile, syncedDirectory, wrote(1, sector, sectors("b")))
	if diff := cmp.Diff(fields("a a0 ab"), everyOutcome(t, d, Sectors)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fields("a ab"), everyOutcome(t, d, Writes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATruncationIsDoneAsAWholeAndBeforeWhatIsWrittenWhereItCut(t *testing.T) {
	start := []preload.Record{created("f", 1), wrote(1, 0, sectors("aaa")), syncedFile, syncedDirectory}
	for want, then := range map[string][]preload.Record{
		"aaa -":                   {truncated(0)},
		"aaa - 0 b 00 0c b0 bc":   {truncated(0), wrote(1, 0, sectors("b")), wrote(1, sector, sectors("c"))},
		"aaa baa a b a0 b0 ac bc": {truncated(sector), wrote(1, 0, sectors("b")), wrote(1, sector, sectors("c"))},
		"aaa a -":                 {truncated(sector), truncated(0)},
	} {
		if diff := cmp.Diff(fields(want), everyOutcome(t, diskAfter(t, append(start, then...)...), Sectors)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestTheDirectoryKeepsTheOrderOfItsChanges(t *testing.T) {
	d := diskAfter(t, created("f", 1), syncedDirectory, created("g", 2), unlinked, created("h", 3))
	got := map[string]bool{}
	for seed := range uint64(200) {
		names := ""
		m := d.Crash(Sectors, rand.New(rand.NewPCG(seed, 0)))
		for _, name := range []string{"f", "g", "h"} {
			if _, ok := m[name]; ok {
				names += name
			}
		}
		got[names] = true
	}
	if diff := cmp.Diff(map[string]bool{"f": true, "fg": true, "g": true, "gh": true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASeedRepeatsItsImage(t *testing.T) {
	var records []preload.Record
	for inode, name := range []string{"f", "g", "h"} {
		records = append(records, created(name, uint64(inode)), wrote(uint64(inode), 0, sectors("abcdefgh")))
	}
	d := diskAfter(t, append(records, syncedDirectory)...)
	for _, way := range Ways {
		one, other := d.Crash(way, rand.New(rand.NewPCG(7, 7))), d.Crash(way, rand.New(rand.NewPCG(7, 7)))
		if diff := cmp.Diff(one, other); diff != "" {
			t.Errorf("%s: %s", way, diff)
		}
	}
}

func TestADiskStartsFromWhatIsThere(t *testing.T) {
	d := NewDisk(Image{"f": text("old"), "g": text("older")})
	for _, r := range []preload.Record{{Kind: preload.Opened, Name: "f", Inode: 5}, wrote(5, 0, text("n"))} {
		if err := d.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := d.Crash(Everything, nil).Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"f": "nld", "g": "older"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s has %q, %v", name, b, err)
		}
	}
	if err := d.Apply(wrote(6, 0, text("x"))); err == nil {
		t.Error("a write to a file that nobody made is taken")
	}
}

// everyOutcome crashes often enough to see all that a way can leave of f, each outcome as a letter for a sector, 0 for zeros;
// a dash if the file is empty.
func everyOutcome(t *testing.T, d *Disk, way Way) map[string]bool {
	t.Helper()
	got := map[string]bool{}
	for seed := range uint64(2000) {
		outcome := ""
		for f := d.Crash(way, rand.New(rand.NewPCG(seed, 1)))["f"]; len(f) > 0; f = f[sector:] {
			if bytes.Count(f[:sector], f[:1]) != sector {
				t.Fatalf("%s: a sector is torn", way)
			}
			outcome += string(max(f[0], '0'))
		}
		if outcome == "" {
			outcome = "-"
		}
		got[outcome] = true
	}
	return got
}

func fields(s string) map[string]bool {
	all := map[string]bool{}
	for _, f := range bytes.Fields(text(s)) {
		all[string(f)] = true
	}
	return all
}
