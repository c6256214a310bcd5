package iofault

import (
	"database/sql"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

// openings are what Open may find in a directory.
var openings = map[string]func(t *testing.T, dir string){
	"nothing":        func(*testing.T, string) {},
	"a queue":        func(t *testing.T, dir string) { layBed(t, dir) },
	"the original's": layOriginal,
	"a killed one's": layKilled,
}

// layOriginal makes a file of the Python original: opening it migrates it, step by step.
func layOriginal(t *testing.T, dir string) {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("..", "..", "sql", "sqlite", "testdata", "original", "1.4.1.sql"))
	ok(t, err)
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, dbFile))
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	for _, s := range []string{string(schema), `INSERT INTO messages (queue, payload, status, attempts, max_attempts, available_at, last_error, failure_reason, job_id, created_at, updated_at) VALUES
		('default', zeroblob(3000), 0, 0, 4, 1, NULL, NULL, 'a', 1, 1), ('default', zeroblob(5000), 3, 4, 4, 1, 'boom', 'retries_exhausted', 'b', 1, 1)`} {
		_, err := db.Exec(s)
		ok(t, err)
	}
}

// layKilled makes a queue whose last process was killed: most of it is in the WAL, which Open recovers.
func layKilled(t *testing.T, dir string) {
	t.Helper()
	layBed(t, dir)
	p := startChild(t, sound)
	must(t, p.does(t, order{Do: "open", Dir: dir, Durability: queue.Normal}))
	must(t, p.does(t, order{Do: "run", Op: "put of a batch"}))
	p.kill(t)
}

func TestOpeningOnAFailingDiskTellsTheTruthAndLosesNothing(t *testing.T) {
	for name, lay := range openings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			start, sound := place(t), place(t)
			lay(t, start)
			ok(t, os.CopyFS(sound, os.DirFS(start)))
			want := surveyNew(t, sound)
			for _, f := range append(faults(len(name)), unopened) {
				for _, nth := range places(s.tryOpening(t, start, want, f).Seen) {
					f.Nth = nth
					s.tryOpening(t, start, want, f)
					if t.Failed() {
						t.Fatalf("that was %s, %s", name, faultText(f))
					}
				}
			}
		})
	}
}

// unopened is a file that can't be opened at that moment.
var unopened = preload.Fault{Calls: preload.Open, Files: preload.DB, Errno: syscall.EIO}

// tryOpening opens a copy of a directory while a fault comes, and then without.
func (s *stand) tryOpening(t *testing.T, start, want string, f preload.Fault) report {
	t.Helper()
	dir := s.newDir(t)
	ok(t, os.CopyFS(dir, os.DirFS(start)))
	r := s.child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full, Fault: &f})
	holds(t, f, r)
	if r.Err != "" {
		must(t, s.child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full}))
	}
	if diff := cmp.Diff(want, surveyNew(t, dir)); diff != "" {
		t.Errorf("opening that ended in %v changed the jobs (-want +found):\n%s", r.answer, diff)
	}
	next := s.child.does(t, order{Do: "next"})
	if f.Calls&preload.Open != 0 && next.is("ErrReadOnly") { // told once by a Store that could only read, and mended
		next = s.child.does(t, order{Do: "next"})
	}
	must(t, next)
	must(t, s.child.does(t, order{Do: "close"}))
	surveyNew(t, dir)
	s.leave(t, dir)
	return r
}

// surveyNew is survey of a directory that need not have a queue yet.
func surveyNew(t *testing.T, dir string) string {
	t.Helper()
	st, err := queue.Open(dir)
	ok(t, err)
	defer func() { ok(t, st.Close()) }()
	return survey(t, dir)
}

// The last one to close copies the WAL into the database and removes it: what it can't copy must stay.
func TestClosingOnAFailingDiskLosesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	closing := func(f preload.Fault) report {
		dir := s.lay(t)
		must(t, s.child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full}))
		puts := s.child.does(t, order{Do: "series", Op: "a few puts"})
		r := s.child.does(t, order{Do: "close", Fault: &f})
		holds(t, f, r)
		survey(t, dir)
		eachAgrees(t, dir, f, puts)
		s.leave(t, dir)
		return r
	}
	for _, f := range append(faults(0), faults(1)...) {
		for _, nth := range places(closing(f).Seen) {
			f.Nth = nth
			closing(f)
			if t.Failed() {
				t.Fatalf("that was %s", faultText(f))
			}
		}
	}
}

// A Store whose writing connection is gone, and can't be made anew, says so until it can, and can be closed.
func TestAWriterThatCannotBeOpenedAgainIsToldAndMended(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	never := unopened
	never.Nth, never.Sticky = 1, true
	lost := 0
	for _, mended := range []bool{true, false} {
		for once := unopened; ; {
			once.Nth++
			dir := s.lay(t)
			r := s.child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full, Fault: &once})
			if r.Fired == 0 {
				must(t, s.child.does(t, order{Do: "close"}))
				break
			}
			if r.Err != "" {
				continue
			}
			for _, op := range []string{"put", "put", "vacuum", "stats"} {
				if r = s.child.does(t, order{Do: "run", Op: op, Fault: &never}); r.Err != "" {
					lost++
					if !r.is("ErrIO") && !r.is("ErrReadOnly") {
						t.Errorf("%s: %v, want ErrIO or ErrReadOnly", op, r.answer)
					}
				}
			}
			if mended {
				must(t, s.child.does(t, order{Do: "next"}))
			}
			must(t, s.child.does(t, order{Do: "close"}))
			survey(t, dir)
		}
	}
	if lost == 0 {
		t.Error("no connection was ever lost")
	}
}
