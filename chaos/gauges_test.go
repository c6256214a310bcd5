//go:build linux

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// gauges are what the processes and files of a soak take, over its time.
type gauges struct {
	crew    *crew
	steady  []*member // those that live as long as the soak
	samples []sample
}

type sample struct {
	at      time.Duration
	db, wal int64   // bytes
	rss     []int64 // bytes, of each steady process
}

const mb = 1 << 20

func (g *gauges) measure(at time.Duration) {
	s := sample{at: at, db: size(g.crew.dir, "localqueue.db"), wal: size(g.crew.dir, "localqueue.db-wal")}
	for _, m := range g.steady {
		s.rss = append(s.rss, rss(m.cmd.Process.Pid))
	}
	g.samples = append(g.samples, s)
}

// size of a file, by name only: nothing here may open it.
func size(dir, name string) int64 {
	st, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return 0 // it is being made, or was emptied and removed
	}
	return st.Size()
}

// rss is what of a process is in memory.
func rss(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0 // it has ended; the crew hears of that
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// third is the highest value in the first (0), second or last (2) third of the time.
func (g *gauges) third(n int, of func(sample) int64) (most int64) {
	for i, s := range g.samples {
		if i*3/len(g.samples) == n {
			most = max(most, of(s))
		}
	}
	return most
}

// check: nothing grows with the time, but for what is kept: the dead letters.
func (g *gauges) check() {
	t := g.crew.t
	t.Helper()
	if len(g.samples) < 3 {
		t.Error("the soak was too short to measure anything")
		return
	}
	bounded := func(what string, least int64, of func(sample) int64) {
		t.Helper()
		first, last := g.third(1, of), g.third(2, of)
		if last > first+first/2+least {
			t.Errorf("%s grows: %d in the second third of the time, %d in the last", what, first, last)
		}
	}
	bounded("the file", 4*mb, func(s sample) int64 { return s.db })
	for i, m := range g.steady {
		bounded("the memory of "+m.Name, 16*mb, func(s sample) int64 { return s.rss[i] })
	}
	if most := g.most(func(s sample) int64 { return s.wal }); most > 64*mb {
		t.Errorf("the WAL has had %d MB", most/mb)
	}
	for name, counts := range g.goroutines() {
		if n := len(counts); counts[n-1] > counts[n/3]+20 || counts[n-1] > 100 {
			t.Errorf("%s has %d goroutines after a third of the time, %d at the end", name, counts[n/3], counts[n-1])
		}
	}
}

func (g *gauges) most(of func(sample) int64) int64 {
	return max(g.third(0, of), g.third(1, of), g.third(2, of))
}

// goroutines are what the steady processes wrote down of themselves.
func (g *gauges) goroutines() map[string][]int {
	byName := map[string][]int{}
	byDir, err := readJournals(filepath.Dir(g.crew.journalOf("any")))
	if err != nil {
		g.crew.t.Error(err)
		return nil
	}
	for _, m := range g.steady {
		for _, c := range byDir[""] {
			if c.Proc == m.Name && c.Op == opGauge {
				byName[m.Name] = append(byName[m.Name], c.Want)
			}
		}
		if len(byName[m.Name]) == 0 {
			g.crew.t.Errorf("%s hasn't told how many goroutines it has", m.Name)
			delete(byName, m.Name)
		}
	}
	return byName
}

func (g *gauges) String() string {
	var b strings.Builder
	b.WriteString("the highest in each third of the time, in MB, and the goroutines at the end:\n")
	row := func(what string, of func(sample) int64, more string) {
		fmt.Fprintf(&b, "  %-10s %6.1f %6.1f %6.1f  %s\n", what, inMB(g.third(0, of)), inMB(g.third(1, of)), inMB(g.third(2, of)), more)
	}
	row("file", func(s sample) int64 { return s.db }, "")
	row("WAL", func(s sample) int64 { return s.wal }, "")
	counts := g.goroutines()
	for i, m := range g.steady {
		row(m.Name, func(s sample) int64 { return s.rss[i] }, fmt.Sprint(last(counts[m.Name])))
	}
	return b.String()
}

func inMB(bytes int64) float64 { return float64(bytes) / mb }

func last(counts []int) int {
	if len(counts) == 0 {
		return 0
	}
	return counts[len(counts)-1]
}
