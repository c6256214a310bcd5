package iofault

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

// tree is one of the file's b-trees, or its header.
type tree struct {
	name     string
	from, to int64 // bytes of the file that are damaged
}

// trees finds the root of each table and index.
func trees(t *testing.T, path string) (all []tree) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	var page int64
	ok(t, db.QueryRow("PRAGMA page_size").Scan(&page))
	all = []tree{{"the header", 0, 100}, {"the schema", 100, page}}
	rows, err := db.Query("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
	ok(t, err)
	defer func() { ok(t, rows.Close()) }()
	for rows.Next() {
		var name string
		var root int64
		ok(t, rows.Scan(&name, &root))
		all = append(all, tree{name, (root - 1) * page, root * page})
	}
	ok(t, rows.Err())
	return all
}

// overwrite puts other bytes in place of some of a file's, and returns what puts the old ones back. No process may have the
// file open: SQLite doesn't look again at pages that it knows, and closing a database drops the locks of its process.
func overwrite(t testing.TB, path string, at int64, with []byte) (restore func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ok(t, err)
	old := make([]byte, len(with))
	_, err = f.ReadAt(old, at)
	ok(t, err)
	_, err = f.WriteAt(with, at)
	ok(t, err)
	ok(t, f.Close())
	return func() { overwrite(t, path, at, old) }
}

// A damaged page stops the operations that need it, with an error that says so, and nothing else is lost by trying.
func TestAnOperationOnADamagedFileSaysSoAndLosesNothing(t *testing.T) {
	t.Parallel()
	child, base := startChild(t), place(t)
	sample := copyBed(t)
	tried, said := 0, 0
	for i, tr := range trees(t, filepath.Join(sample, dbFile)) {
		t.Run(tr.name, func(t *testing.T) {
			for j, op := range operations {
				for k, bytes := range []string{"\xa5", "\x00"} {
					if !long && (i+j+k)%7 != 0 {
						continue
					}
					dir := filepath.Join(base, fmt.Sprint(i, j, bytes == "\x00"))
					ok(t, os.Mkdir(dir, 0o700))
					layBed(t, dir)
					tried++
					if r := tryOnDamage(t, child, dir, tr, bytes, op); r.Err != "" {
						said++
					}
					ok(t, os.RemoveAll(dir))
					if t.Failed() {
						t.Fatalf("that was %s with %s filled with %q", op.name, tr.name, bytes)
					}
				}
			}
		})
	}
	if tried > 0 && said == 0 {
		t.Error("no damage has been told")
	}
}

func tryOnDamage(t *testing.T, child *process, dir string, tr tree, bytes string, op operation) report {
	t.Helper()
	restore := overwrite(t, filepath.Join(dir, dbFile), tr.from, []byte(strings.Repeat(bytes, int(tr.to-tr.from))))
	r := child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full})
	if r.Err == "" {
		r = child.does(t, order{Do: "run", Op: op.name})
		must(t, child.does(t, order{Do: "close"}))
	}
	if r.Err != "" && !r.is("ErrCorrupt") && !r.is("errFound") {
		t.Errorf("%v: it doesn't tell the damage", r.answer)
	}
	restore()
	must(t, child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full}))
	must(t, child.does(t, order{Do: "next"}))
	must(t, child.does(t, order{Do: "close"}))
	agrees(t, op, r.answer, survey(t, dir))
	return r
}

// A WAL ends where its bytes are not what was written: that is how SQLite tells what a power cut has left of it. What is read
// of a damaged one is a state that the queue has been in.
func TestADamagedWALIsReadUpToTheDamage(t *testing.T) {
	t.Parallel()
	child := startChild(t)
	dir := copyBed(t)
	must(t, child.does(t, order{Do: "open", Dir: dir, Durability: queue.Normal}))
	r := child.does(t, order{Do: "series", Op: "a few puts"})
	child.kill(t)
	wal := filepath.Join(dir, dbFile+"-wal")
	st, err := os.Stat(wal)
	ok(t, err)
	for at := int64(0); at < st.Size(); at += 1500 {
		copied := place(t)
		ok(t, os.CopyFS(copied, os.DirFS(dir)))
		ok(t, os.Remove(filepath.Join(copied, dbFile+"-shm"))) // nobody has it open
		overwrite(t, filepath.Join(copied, dbFile+"-wal"), at, []byte("damage"))
		survey(t, copied)
		s, err := queue.Open(copied)
		ok(t, err)
		lost := ""
		for _, a := range r.Series {
			switch is := stored(t, s.Default(), a.Key); {
			case !is:
				lost = a.Key
			case lost != "":
				t.Errorf("damage at byte %d: %s is there, and %s before it isn't", at, a.Key, lost)
			}
		}
		ok(t, s.Close())
	}
}
