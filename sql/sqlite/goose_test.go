package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// The goose command applies the same files as we do. make goose builds it from tools/goose and runs these tests with
// LOCALQUEUE_GOOSE naming the program; without it they are left out, since building it takes minutes.

// gooseDSN is how docs/migration.md has the command open a file that is in use: by itself it waits for no lock.
const gooseDSN = "file:%s?_pragma=busy_timeout(10000)"

func needsGoose(t *testing.T) {
	t.Helper()
	if os.Getenv("LOCALQUEUE_GOOSE") == "" {
		t.Skip("left out: LOCALQUEUE_GOOSE doesn't name the goose command; make goose builds it and runs this")
	}
}

// gooseCommand runs the command on a file and returns what it says.
func gooseCommand(t *testing.T, dsn, path string, verb ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{"-dir", "migrations", "sqlite3", strings.Replace(dsn, "%s", path, 1)}, verb...)
	out, err := osexec.CommandContext(ctx, os.Getenv("LOCALQUEUE_GOOSE"), args...).CombinedOutput()
	return string(out), err
}

func mustGoose(t *testing.T, path string, verb ...string) string {
	t.Helper()
	out, err := gooseCommand(t, gooseDSN, path, verb...)
	if err != nil {
		t.Fatalf("goose %s: %v\n%s", verb, err, out)
	}
	return out
}

func TestTheGooseCommandMakesTheSameSchema(t *testing.T) {
	needsGoose(t)
	path := filepath.Join(t.TempDir(), "localqueue.db")
	mustGoose(t, path, "up")
	fresh := openFile(t)
	up(t, fresh)
	equal(t, "schema", schema(t, fresh), schema(t, openPath(t, path)))
	s, err := queue.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	putAndAck(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func putAndAck(t *testing.T, s *queue.Store) {
	t.Helper()
	_, err := s.Default().Put(t.Context(), []byte("new"), queue.Priority(9))
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Default().TryGet(t.Context())
	if err != nil || string(j.Payload) != "new" {
		t.Fatalf("%+v, %v", j, err)
	}
	if err := j.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTheGooseCommandOnALiveDirectory(t *testing.T) {
	needsGoose(t)
	dir := t.TempDir()
	s, err := queue.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	stop, written := make(chan struct{}), make(chan error, 1)
	puts := make(chan int, 1)
	go func() {
		n := 0
		defer func() { puts <- n }()
		for {
			select {
			case <-stop:
				written <- nil
				return
			default:
				if _, err := s.Default().Put(context.Background(), []byte("x")); err != nil {
					written <- err
					return
				}
				n++
			}
		}
	}()
	path := filepath.Join(dir, "localqueue.db")
	if out := mustGoose(t, path, "status"); strings.Contains(out, "Pending") || !strings.Contains(out, "00002_lease_queue.sql") {
		t.Errorf("status says\n%s", out)
	}
	if out := mustGoose(t, path, "up"); !strings.Contains(out, "no migrations to run") {
		t.Errorf("up says\n%s", out)
	}
	close(stop)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	st, err := s.Default().Stats(t.Context())
	if err != nil || st.Ready != int64(<-puts) {
		t.Errorf("%+v, %v", st, err)
	}
	if found, err := s.Check(t.Context(), false); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTheGooseCommandWaitsForALockOnlyIfItIsTold(t *testing.T) {
	needsGoose(t)
	path := filepath.Join(t.TempDir(), "localqueue.db")
	holder := openPath(t, path)
	up(t, holder)
	downTo(t, holder, 2)
	tx, err := holder.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE queues SET paused = 0"); err != nil { // takes the write lock
		t.Fatal(err)
	}
	out, err := gooseCommand(t, "file:%s", path, "up")
	if exit := (*osexec.ExitError)(nil); !errors.As(err, &exit) || !strings.Contains(out, "locked") {
		t.Errorf("up doesn't say that the file is locked: %v\n%s", err, out)
	}
	released := time.AfterFunc(time.Second, func() { _ = tx.Rollback() })
	defer released.Stop()
	mustGoose(t, path, "up")
	equal(t, "version", latest(t), dump(t, holder, "goose_db_version", "max(version_id)"))
}

// latest is the number of the last migration, as dump writes it.
func latest(t *testing.T) []string {
	t.Helper()
	fresh := openFile(t)
	up(t, fresh)
	return dump(t, fresh, "goose_db_version", "max(version_id)")
}

func TestTheGooseCommandLeadsAStoppedDirectoryDownAndUp(t *testing.T) {
	needsGoose(t)
	for _, name := range append(releasedFixtures(t), "original/1.4.1") {
		t.Run(name, func(t *testing.T) {
			db := openFixture(t, name)
			up(t, db)
			path := pathOf(t, db)
			jobs, objects := dump(t, db, "messages ORDER BY id", "id", "status", "attempts", "available_at", "receipt", "last_error"), schema(t, db)
			bytes := dump(t, db, "jobs ORDER BY id", "id", "payload")
			mustGoose(t, path, "down") // one step
			if slices.Equal(latest(t), dump(t, db, "goose_db_version", "max(version_id)")) {
				t.Error("down did nothing")
			}
			mustGoose(t, path, "down-to", "0")
			equal(t, "version", []string{"0"}, dump(t, db, "goose_db_version", "max(version_id)"))
			equal(t, "jobs", jobs, dump(t, db, "messages ORDER BY id", "id", "status", "attempts", "available_at", "receipt", "last_error"))
			equal(t, "bytes", bytes, dump(t, db, "messages ORDER BY id", "id", "payload"))
			mustGoose(t, path, "up")
			equal(t, "bytes after another up", bytes, dump(t, db, "jobs ORDER BY id", "id", "payload"))
			equal(t, "schema", butMessages(objects), butMessages(schema(t, db)))
			checkCounters(t, db)
		})
	}
}

func pathOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	return strings.Trim(dump(t, db, "pragma_database_list WHERE name = 'main'", "file")[0], "'")
}
