package queue_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// shape is one way to set up the system under the same suite.
type shape struct {
	name    string
	prepare func(t *testing.T, dir string)
	open    func(dir string, o storeOpts, now time.Time) ([]peer, error)
}

var shapes = []shape{
	{"one Store", freshFile, openStores(1)},
	{"several Stores", copied(freshFile), openStores(3)},
	{"several processes", copied(freshFile), openServers},
	{"adopted file", copied(originalFile), openStores(1)},
	{"stepping clock", copied(freshFile), openSteppingStores(2)},
}

func freshFile(*testing.T, string) {}

// copied prepares a directory with a copy of the file that the first of them has become at its first opening: the same
// bytes, without the work.
func copied(prepare func(*testing.T, string)) func(*testing.T, string) {
	var once sync.Once
	var file []byte
	return func(t *testing.T, dir string) {
		t.Helper()
		once.Do(func() {
			first := t.TempDir()
			prepare(t, first)
			s, err := queue.Open(first)
			if err == nil {
				err = s.Close()
			}
			if err == nil {
				file, err = os.ReadFile(filepath.Join(first, "localqueue.db"))
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err := os.WriteFile(filepath.Join(dir, "localqueue.db"), file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func openStores(n int) func(string, storeOpts, time.Time) ([]peer, error) {
	return func(dir string, o storeOpts, now time.Time) (peers []peer, err error) {
		for i := range n {
			p, err := openLocal(dir, o.numbered(i), now)
			if err != nil {
				return peers, err
			}
			peers = append(peers, p)
		}
		return peers, nil
	}
}

func openServers(dir string, o storeOpts, now time.Time) (peers []peer, err error) {
	all, err := servers()
	if err != nil {
		return nil, err
	}
	for i, r := range all {
		p, err := r.open(dir, o.numbered(i), now)
		if err != nil {
			return peers, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// numbered gives each Store a name of its own.
func (o storeOpts) numbered(i int) storeOpts {
	o.Name = fmt.Sprintf("store%d", i)
	return o
}

func originalFile(t *testing.T, dir string) { t.Helper(); originalFileAt(t, dir, start) }

// originalFileAt makes a file as the Python original 1.0.0 does, with a job in each state.
func originalFileAt(t *testing.T, dir string, now time.Time) {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("..", "sql", "sqlite", "testdata", "original", "1.0.0.sql"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "localqueue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"PRAGMA journal_mode = WAL", string(schema), fmt.Sprintf(`
		INSERT INTO messages (queue, payload, status, attempts, max_attempts, available_at, lease_until, receipt, last_error, job_id, created_at, updated_at) VALUES
		('old', CAST('ready' AS BLOB),   0, 0, 4, %[1]d, NULL, NULL, NULL, 'a', %[1]d, %[1]d),
		('old', CAST('delayed' AS BLOB), 0, 1, 4, %[2]d, NULL, NULL, 'boom', NULL, %[1]d, %[1]d),
		('old', CAST('leased' AS BLOB),  1, 1, 4, %[1]d, %[2]d, '0123456789abcdef0123456789abcdef', NULL, 'b', %[1]d, %[1]d),
		('old', CAST('acked' AS BLOB),   2, 1, 4, %[1]d, NULL, NULL, NULL, 'c', %[1]d, %[1]d),
		('old', CAST('failed' AS BLOB),  3, 4, 4, %[1]d, NULL, NULL, 'bang', 'd', %[1]d, %[1]d)`,
		now.Add(-time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli())} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%v in %s", err, statement)
		}
	}
}
