//go:build unix

package main

import (
	"compress/gzip"
	"database/sql"
	"io"
	"os"
	"path/filepath"

	_ "github.com/mattn/go-sqlite3"
	"github.com/rogpeppe/go-internal/testscript"
)

// cmdUnpack makes a directory with an old file of the engine's tests in it: unpack original/1.4.1 DIR.
func cmdUnpack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unpack FIXTURE DIR")
	}
	packed, err := os.Open(filepath.Join("..", "..", "queue", "testdata", args[0]+".db.gz"))
	ts.Check(err)
	defer func() { _ = packed.Close() }()
	unpacked, err := gzip.NewReader(packed)
	ts.Check(err)
	data, err := io.ReadAll(unpacked)
	ts.Check(err)
	ts.Check(os.MkdirAll(ts.MkAbs(args[1]), 0o700))
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[1]), "localqueue.db"), data, 0o600))
}

// cmdSQLite changes a file as another program: sqlite DIR STATEMENT.
func cmdSQLite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sqlite DIR STATEMENT")
	}
	db := openOther(ts, args[0])
	_, err := db.Exec(args[1])
	ts.Check(err)
	ts.Check(db.Close())
}

// cmdLocked is exits, while another program holds a file's write lock: locked DIR CODE COMMAND ARGS...
func cmdLocked(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: locked DIR CODE COMMAND ARGS...")
	}
	db := openOther(ts, args[0])
	defer func() { _ = db.Close() }()
	tx, err := db.Begin()
	ts.Check(err)
	defer func() { _ = tx.Rollback() }()
	cmdExits(ts, neg, args[1:])
}

func openOther(ts *testscript.TestScript, dir string) *sql.DB {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(ts.MkAbs(dir), "localqueue.db")+"?mode=rw&_txlock=immediate&_busy_timeout=5000")
	ts.Check(err)
	return db
}
