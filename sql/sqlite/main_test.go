// Package sqlite_test checks the SQL of the SQLite engine: its style, the plans of its queries, and its migrations.
package sqlite_test

import (
	"database/sql"
	"flag"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"
	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/sql/sqlite/migrations"
)

var update = flag.Bool("update", false, "rewrite the golden plans")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openFile opens a new database on one connection.
func openFile(t *testing.T) *sql.DB {
	t.Helper()
	return openPath(t, filepath.Join(t.TempDir(), "localqueue.db"))
}

func openPath(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_sync=OFF")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%v in\n%s", err, statement)
	}
}

func provider(t *testing.T, db *sql.DB) *goose.Provider {
	t.Helper()
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func up(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := provider(t, db).Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func down(t *testing.T, db *sql.DB) {
	t.Helper()
	downTo(t, db, 0)
}

func downTo(t *testing.T, db *sql.DB, version int64) {
	t.Helper()
	if _, err := provider(t, db).DownTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}
