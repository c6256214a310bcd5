package queue_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

// closedQueue makes a queue with some jobs in a directory, and returns the path of its file.
func closedQueue(t testing.TB, dir string) string {
	t.Helper()
	s, err := queue.Open(dir)
	ok(t, err)
	for i := range 200 {
		_, err := s.Default().Put(context.Background(), []byte(repeat("x", i*30)))
		ok(t, err)
	}
	ok(t, s.Close())
	return filepath.Join(dir, "localqueue.db")
}

// sqliteFile makes a database of other programs.
func sqliteFile(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	for _, s := range statements {
		_, err := db.Exec(s)
		ok(t, err)
	}
}

var refusedCases = []fileCase{
	{"Rule42_AFileThatIsRefusedIsLeftAsItIs", func(t *testing.T) {
		for _, c := range []struct {
			name string
			make func(t *testing.T, path string)
			want error
			says string
		}{
			{"another program's", func(t *testing.T, path string) { sqliteFile(t, path, "CREATE TABLE people (name TEXT)") }, queue.ErrForeignFile, "another program"},
			{"another program's messages", func(t *testing.T, path string) {
				sqliteFile(t, path, "CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT)", "INSERT INTO messages VALUES (1, 'hello')")
			}, queue.ErrForeignFile, "has no column"},
			{"only a view", func(t *testing.T, path string) { sqliteFile(t, path, "CREATE VIEW messages AS SELECT 1 AS id") }, queue.ErrForeignFile, ""},
			{"a newer schema", func(t *testing.T, path string) {
				closedQueue(t, filepath.Dir(path))
				sqliteFile(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (900, 1)")
			}, queue.ErrNewerSchema, "900"},
			{"text", func(t *testing.T, path string) {
				ok(t, os.WriteFile(path, []byte(repeat("no database. ", 1000)), 0o600))
			}, queue.ErrCorrupt, "localqueue.db"},
			{"short text", func(t *testing.T, path string) { ok(t, os.WriteFile(path, []byte("no"), 0o600)) }, queue.ErrCorrupt, ""},
			{"a broken header", func(t *testing.T, path string) { damage(t, closedQueue(t, filepath.Dir(path)), 0, 100) }, queue.ErrCorrupt, ""},
			{"a broken schema", func(t *testing.T, path string) { damage(t, closedQueue(t, filepath.Dir(path)), 100, 4000) }, queue.ErrCorrupt, ""},
		} {
			dir := t.TempDir()
			c.make(t, filepath.Join(dir, "localqueue.db"))
			removeOurs := func() { // all that may be new
				for _, name := range []string{"localqueue.lock", "localqueue.open"} {
					_ = os.Remove(filepath.Join(dir, name))
				}
			}
			removeOurs()
			before := content(t, dir)
			for name, open := range map[string]func() error{
				"open":    func() error { return second(queue.Open(dir)) },
				"exist":   func() error { return second(queue.Open(dir, queue.MustExist())) },
				"migrate": func() error { return second(queue.Migrate(t.Context(), dir)) },
				"status":  func() error { return second(queue.MigrateStatus(t.Context(), dir)) },
			} {
				err := open()
				if err == nil {
					t.Errorf("%s takes a file that is %s", name, c.name)
					continue
				}
				matches(t, err, c.want)
				contains(t, err, c.says, "localqueue.db")
			}
			removeOurs()
			same(t, c.name, before, content(t, dir))
		}
	}},
	{"Rule42_ADamagedFileSaysSoAndTheRestOfItIsNotRewritten", func(t *testing.T) {
		dir := t.TempDir()
		path := closedQueue(t, dir)
		st, err := os.Stat(path)
		ok(t, err)
		damage(t, path, 40*2048, int(st.Size())-40*2048)
		s, err := queue.Open(dir)
		if err == nil {
			defer func() { _ = s.Close() }()
			found, err2 := s.Check(t.Context(), false)
			if err2 == nil && len(found) == 0 {
				t.Error("Check finds nothing wrong")
			}
			for range 300 {
				var j *queue.Job
				if j, err = s.Default().TryGet(t.Context()); err != nil {
					break
				}
				if err = j.Ack(t.Context()); err != nil {
					break
				}
			}
		}
		matches(t, err, queue.ErrCorrupt)
		contains(t, err, path)
	}},
	{"Rule42_ATruncatedFileSaysSo", func(t *testing.T) {
		dir := t.TempDir()
		path := closedQueue(t, dir)
		ok(t, os.Truncate(path, 30*2048))
		s, err := queue.Open(dir)
		if err == nil {
			_, err = s.Default().TryGetMany(t.Context(), 1000)
			ok(t, s.Close())
		}
		matches(t, err, queue.ErrCorrupt)
	}},
}

// damage overwrites n bytes of a file.
func damage(t testing.TB, path string, at, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ok(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("\xA5", n)), int64(at))
	ok(t, err)
	ok(t, f.Close())
}
