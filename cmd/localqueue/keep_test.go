//go:build unix

package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A reader that goes on holds the WAL back: the file keeps its size, and the WAL has a copy of it besides.
func TestVacuumSaysWhenAReaderKeepsTheSpace(t *testing.T) {
	p := newPlace(t)
	p.put("x")
	otherProgram(t, p.dir, "INSERT INTO payloads VALUES (1000, zeroblob(4000000))", "DELETE FROM payloads WHERE message_id = 1000")
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(p.dir, "localqueue.db")+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	reader, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRow("SELECT count(*) FROM messages").Scan(&n); err != nil {
		t.Fatal(err)
	}
	vacuum := func() (doc vacuumDoc) {
		t.Helper()
		out, _ := p.run(0, "vacuum", "--json")
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	if doc := vacuum(); !doc.Vacuumed || !doc.Pinned || doc.WAL == 0 || doc.After < 4_000_000 {
		t.Errorf("beside a reader: %+v", doc)
	}
	if _, said := p.run(0, "vacuum"); !strings.Contains(said, "the WAL could not be emptied") {
		t.Errorf("it notes %q", said)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	doc := vacuum()
	if doc.Pinned || doc.WAL != 0 || doc.Before < 4_000_000 || doc.After > 1_000_000 {
		t.Errorf("when it has ended: %+v", doc)
	}
	if st, err := os.Stat(filepath.Join(p.dir, "localqueue.db")); err != nil || st.Size() != doc.After {
		t.Errorf("the file has %v (%v), it says %d", st, err, doc.After)
	}
}
