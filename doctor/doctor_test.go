package doctor_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/mattn/go-sqlite3"
	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/doctor"
	"github.com/localqueue/localqueue/queue"
)

// roleEnv has this test binary examine a directory as a user without rights, and print the codes of the problems.
const roleEnv = "LOCALQUEUE_DOCTOR_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(roleEnv); dir != "" {
		examineAsNobody(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a directory with a queue in it that nobody has open.
func made(t testing.TB, use func(s *queue.Store), opts ...queue.Option) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "q")
	fill(t, dir, use, opts...)
	return dir
}

func fill(t testing.TB, dir string, use func(s *queue.Store), opts ...queue.Option) {
	t.Helper()
	s, err := queue.Open(dir, opts...)
	ok(t, err)
	if use != nil {
		use(s)
	}
	ok(t, s.Close())
}

// raw runs statements as another program would, and closes its connection.
func raw(t testing.TB, dir string, statements ...string) {
	t.Helper()
	db, conn := connection(t, dir, statements...)
	ok(t, conn.Close())
	ok(t, db.Close())
}

// connection leaves it open until the end of the test.
func connection(t testing.TB, dir string, statements ...string) (*sql.DB, *sql.Conn) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "localqueue.db")+"?_busy_timeout=10000")
	ok(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(t.Context())
	ok(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	for _, s := range statements {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%v in %s", err, s)
		}
	}
	return db, conn
}

func examine(t testing.TB, dir string, opts ...queue.Option) *doctor.Report {
	t.Helper()
	r, err := doctor.Examine(t.Context(), dir, opts...)
	ok(t, err)
	return r
}

// content is every file of a directory with its mode and a hash. Nobody in this process may have it open.
func content(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	for _, e := range entries {
		st, err := e.Info()
		ok(t, err)
		line := fmt.Sprint(e.Name(), " ", st.Mode(), " ", st.ModTime().UnixNano())
		if st.Mode().IsRegular() && !strings.HasSuffix(e.Name(), "-shm") { // SQLite's shared memory, also among readers
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			ok(t, err)
			line += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		all = append(all, line)
	}
	return all
}

func codes(r *doctor.Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, string(f.Severity)+" "+string(f.Code))
	}
	return all
}

// ahead is a clock that is set ahead of the real one.
func ahead(d time.Duration) queue.Option {
	return queue.WithClock(func() time.Time { return time.Now().Add(d) })
}

func put(t testing.TB, opts ...queue.PutOption) func(*queue.Store) {
	return func(s *queue.Store) {
		_, err := s.Default().Put(context.Background(), []byte("x"), opts...)
		ok(t, err)
	}
}

func claimed(t testing.TB) func(*queue.Store) {
	return func(s *queue.Store) {
		put(t)(s)
		_, err := s.Default().TryGet(context.Background())
		ok(t, err)
	}
}

func acked(t testing.TB) func(*queue.Store) {
	return func(s *queue.Store) {
		put(t)(s)
		j, err := s.Default().TryGet(context.Background())
		ok(t, err)
		ok(t, j.Ack(context.Background()))
	}
}

func TestEachFindingIsMadeWhereItIsDue(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := c.make(t)
			var before []string
			if !c.live {
				before = content(t, dir)
			}
			r := examine(t, dir, c.opts...)
			if !c.live {
				if diff := cmp.Diff(before, content(t, dir)); diff != "" {
					t.Errorf("the look has changed the directory (-before +after):\n%s", diff)
				}
			}
			if diff := cmp.Diff(c.want, codes(r)); diff != "" {
				t.Fatalf("findings (-want +got):\n%s%+v", diff, r.Findings)
			}
			if len(c.want) > 0 && !strings.Contains(r.Findings[0].Text, c.says) {
				t.Errorf("the finding says %q, not %q", r.Findings[0].Text, c.says)
			}
			for _, f := range r.Findings {
				if strings.Contains(f.Text+f.Advice, "\n") || f.Text == "" || f.Advice == "" {
					t.Errorf("no sentence and advice: %+v", f)
				}
			}
			if healthy := !slices.ContainsFunc(c.want, func(s string) bool { return strings.HasPrefix(s, "problem") }); r.Healthy() != healthy {
				t.Errorf("healthy: %v", r.Healthy())
			}
		})
	}
}

func TestWhatIsNoQueueIsAnErrorAndNoneIsMade(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]error{"missing": queue.ErrNoQueue, "": queue.ErrNoQueue, "file": queue.ErrNotDirectory} {
		ok(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		if _, err := doctor.Examine(t.Context(), filepath.Join(dir, name)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("now there are %v (%v)", left, err)
	}
	if _, err := doctor.Examine(t.Context(), dir, queue.WithLease(0)); !errors.Is(err, queue.ErrInvalid) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := doctor.Examine(ctx, made(t, nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
