//go:build linux

package chaos

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/localqueue/localqueue/queue"
)

// account is what was verified.
type account struct {
	rounds, processes, dirs                        int
	puts, batches, keyed, follows, claims, settles int
	lost, jobs, history, imports                   int
	open                                           map[string]tally // what became of unanswered calls, by how their process was killed
}

func (a *account) count(w *world) {
	a.dirs++
	a.jobs += len(w.rows)
	for _, r := range w.rows {
		a.history += len(r.story)
	}
	for _, c := range w.calls {
		switch {
		case c.Op == opPut && len(c.Jobs) > 1:
			a.batches++
		case c.Op == opPut:
			a.puts++
			if c.Jobs[0].Key != "" {
				a.keyed++
			}
		case c.Op == opImport:
			a.imports++
		case c.Op == opNote || c.Op == opGauge || c.Forged:
		case c.Op == opClaim:
			a.claims += len(c.Jobs)
		case c.Err == errLost:
			a.lost++
		case c.Follow != nil:
			a.follows++
			a.settles++
		default:
			a.settles++
		}
	}
}

// verify holds the journals of a round against the files, as the processes have left them and again when everything has been
// drained.
func (c *crew) verify(a *account) {
	t := c.t
	t.Helper()
	a.rounds++
	a.processes += len(c.all)
	byDir, err := readJournals(filepath.Dir(c.journalOf("any")))
	if err != nil {
		t.Fatal(err)
	}
	c.lastBackup()
	names := map[string]bool{"": true} // also those that nobody came to write in
	dirs, err := os.ReadDir(c.others())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if d.Name()[0] == 'm' { // the rest are drafts of killed processes
			names[d.Name()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		dir, calls := c.dir, byDir[name]
		if name != "" {
			dir = filepath.Join(c.others(), name)
			if isOld(numberOf(name)) {
				calls = append(calls, oldCalls(name)...)
			}
		}
		w := c.verifyDir(dir, calls, false)
		if name == "" {
			for how, sum := range w.unanswered(c.killed()) {
				a.add(how, sum)
			}
		}
		drained, err := drain(t.Context(), dir)
		if err != nil {
			t.Errorf("drain: %v", err)
		}
		a.count(c.verifyDir(dir, append(calls, drained...), true))
	}
}

func (a *account) add(how string, more tally) {
	if a.open == nil {
		a.open = map[string]tally{}
	}
	sum := a.open[how]
	a.open[how] = tally{sum.Puts + more.Puts, sum.PutsThere + more.PutsThere, sum.Settles + more.Settles, sum.EndsThere + more.EndsThere}
}

// maxViolations is how many are told of a directory: a broken engine breaks thousands of jobs.
const maxViolations = 8

func (c *crew) verifyDir(dir string, calls []*call, drained bool) *world {
	t := c.t
	t.Helper()
	s, err := queue.Open(dir)
	if err != nil {
		t.Fatalf("open what the round has left: %v", err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	w, err := readWorld(t.Context(), s, calls)
	if err != nil {
		t.Fatalf("read what the round has left: %v", err)
	}
	w.drained = drained
	for _, name := range c.purged {
		w.purged[name] = true
	}
	found := w.violations()
	for _, v := range found[:min(maxViolations, len(found))] {
		t.Errorf("%s: %s", filepath.Base(dir), v)
	}
	if more := len(found) - maxViolations; more > 0 {
		t.Errorf("%s: and %d more", filepath.Base(dir), more)
	}
	return w
}
