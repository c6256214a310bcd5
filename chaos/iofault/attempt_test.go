package iofault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

// stand is a child with the library, and the directory below which its faults come.
type stand struct {
	whole testing.TB // the test that it belongs to; its attempts may be parts of that
	base  string
	env   []string
	child *process
	made  int
}

func newStand(t testing.TB) *stand {
	t.Helper()
	base := place(t)
	env := preload.Build(t).Env(preload.Options{Dir: base, Control: preload.NewControl(t)})
	return &stand{whole: t, base: base, env: env, child: startChild(t, env...)}
}

// lay makes a queue for one attempt.
func (s *stand) lay(t testing.TB) (dir string) {
	t.Helper()
	dir = s.newDir(t)
	layBed(t, dir)
	return dir
}

func (s *stand) newDir(t testing.TB) (dir string) {
	t.Helper()
	s.made++
	dir = filepath.Join(s.base, fmt.Sprint(s.made))
	ok(t, os.Mkdir(dir, 0o700))
	return dir
}

// plan is one attempt.
type plan struct {
	op         operation
	durability queue.Durability
	fault      preload.Fault
}

func (p plan) String() string {
	return fmt.Sprintf("%s, %s, %s", p.op.name, p.durability, faultText(p.fault))
}

// try lets an operation meet a fault, and holds its answer against the file. It returns how many calls the fault could have
// met, and has.
func (s *stand) try(t testing.TB, p plan) report {
	t.Helper()
	dir := s.lay(t)
	r := s.run(t, dir, p)
	must(t, s.child.does(t, order{Do: "next"}))
	must(t, s.child.does(t, order{Do: "close"}))
	agrees(t, p.op, r.answer, survey(t, dir))
	s.leave(t, dir)
	return r
}

// tryKilled is try with a process that is killed after its operation, so that the next one recovers what it has left in the
// WAL, written or half written.
func (s *stand) tryKilled(t testing.TB, p plan) {
	t.Helper()
	dir := s.lay(t)
	r := s.run(t, dir, p)
	s.child.kill(t)
	s.child = startChild(s.whole, s.env...)
	must(t, s.child.does(t, order{Do: "open", Dir: dir, Durability: p.durability}))
	must(t, s.child.does(t, order{Do: "next"}))
	must(t, s.child.does(t, order{Do: "close"}))
	agrees(t, p.op, r.answer, survey(t, dir))
	s.leave(t, dir)
}

func (s *stand) run(t testing.TB, dir string, p plan) report {
	t.Helper()
	must(t, s.child.does(t, order{Do: "open", Dir: dir, Durability: p.durability}))
	r := s.child.does(t, order{Do: "run", Op: p.op.name, Fault: &p.fault})
	holds(t, p.fault, r)
	return r
}

// leave removes an attempt's directory, so that thousands of them need no room.
func (s *stand) leave(t testing.TB, dir string) {
	t.Helper()
	if !t.Failed() {
		ok(t, os.RemoveAll(dir))
	}
}

func must(t testing.TB, r report) {
	t.Helper()
	if r.Err != "" {
		t.Fatalf("without the fault: %v", r.answer)
	}
}

// holds examines an answer by itself: an error tells the fault that came first, in one line, without a payload.
func holds(t testing.TB, f preload.Fault, r report) {
	t.Helper()
	if r.Err == "" {
		return
	}
	if r.Fired == 0 {
		t.Errorf("no fault has come, and yet: %v", r.answer)
	}
	if strings.Contains(r.Err, marker) || strings.Contains(r.Err, "\n") {
		t.Errorf("the error has a payload or a second line: %q", r.Err)
	}
	if !tells(f, r.answer) {
		t.Errorf("%v: it doesn't tell the fault", r.answer)
	}
	if strings.Count(r.Err, queue.ErrIO.Error()) > 1 || r.Unknown && strings.Contains(r.Err, "nothing was stored") {
		t.Errorf("the error repeats or contradicts itself: %s", r.Err)
	}
}

// agrees holds an answer against what is in the file.
func agrees(t testing.TB, op operation, a answer, found string) {
	t.Helper()
	before, after := expected(t, op)
	switch {
	case a.Err == "":
		if found != after {
			t.Errorf("success that isn't in the file (-want +found):\n%s", cmp.Diff(after, found))
		}
	case op.changes == steps && between(before, after, found):
	case a.Unknown && (found == before || found == after):
	case a.Unknown:
		t.Errorf("%v: it is stored neither whole nor not at all (-before +found):\n%s", a, cmp.Diff(before, found))
	case found != before:
		t.Errorf("%v: yet something has changed (-before +found):\n%s", a, cmp.Diff(before, found))
	}
}

// between tells whether each job is as it was before an operation, or as it is after it.
func between(before, after, found string) bool {
	was, will, is := jobs(before), jobs(after), jobs(found)
	for id := range was {
		if is[id] != was[id] && is[id] != will[id] {
			return false
		}
	}
	return len(is) <= len(was)
}

// jobs are the lines of a survey by id.
func jobs(survey string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(survey) {
		if words := strings.Fields(line); strings.HasPrefix(line, " ") {
			all[words[0]] = line
		}
	}
	return all
}

var (
	expecting sync.Mutex
	healthy   = map[string]string{}
)

// expected is what the file holds, beside the next operation's job, without the operation and after it.
func expected(t testing.TB, op operation) (before, after string) {
	t.Helper()
	expecting.Lock()
	defer expecting.Unlock()
	for _, name := range []string{"", op.name} {
		if _, ok := healthy[name]; !ok {
			healthy[name] = afterwards(t, name)
		}
	}
	before, after = healthy[""], healthy[op.name]
	if (op.changes == nothing) != (before == after) {
		t.Fatalf("%s changes the file: %v", op.name, before != after)
	}
	return before, after
}

// afterwards does an operation, or none, on a healthy disk.
func afterwards(t testing.TB, name string) string {
	t.Helper()
	dir, child := copyBed(t), startChild(t, sound)
	must(t, child.does(t, order{Do: "open", Dir: dir, Durability: queue.Normal}))
	if name != "" {
		must(t, child.does(t, order{Do: "run", Op: name}))
	}
	must(t, child.does(t, order{Do: "next"}))
	must(t, child.does(t, order{Do: "close"}))
	return survey(t, dir)
}

// stored tells whether a job with this key is in the default queue.
func stored(t testing.TB, q *queue.Queue, key string) bool {
	t.Helper()
	_, _, err := q.ShowKey(context.Background(), key)
	if answerOf(err).is("ErrNotFound") {
		return false
	}
	ok(t, err)
	return true
}
