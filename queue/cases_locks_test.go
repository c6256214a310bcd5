package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/doctor"
	"github.com/localqueue/localqueue/queue"
)

func TestCase01_EveryOperationWaitsForALockOfAnotherProcess(t *testing.T) {
	w := newWorld(t, shapes[0], storeOpts{})
	made := readyWriters(w)
	other := startProcess(t)
	other.does("hold", w.dir)
	all := map[string]*pending[int]{}
	for name, op := range writers {
		all[name] = inBackground(func() (int, error) { return 0, op.run(w.on(name), made[name]) })
	}
	all["open"] = inBackground(func() (int, error) {
		s, err := queue.Open(w.dir)
		if err != nil {
			return 0, err
		}
		return 0, s.Close()
	})
	held := time.Duration(sized(300, 2000)) * time.Millisecond
	select {
	case a := <-all["put"].done:
		t.Fatalf("a put didn't wait: %v", a.err)
	case <-time.After(held):
	}
	other.does("release", w.dir)
	for name, p := range all {
		if _, err := p.await(t); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.verify()
}

func TestCase01_AnOldFileIsAdoptedOnceItsLockIsFree(t *testing.T) {
	dir := t.TempDir()
	originalFile(t, dir)
	other := startProcess(t)
	other.does("hold", dir)
	open := inBackground(func() (*queue.Store, error) { return queue.Open(dir) })
	open.stillWaits(t)
	other.does("release", dir)
	s, err := open.await(t)
	ok(t, err)
	ok(t, s.Close())
}

func TestCase03_ManyProcessesOpenANewFileAtOnce(t *testing.T) {
	processes := startProcesses(t, 16)
	for name, prepare := range map[string]func(dir string){
		"no directory":    func(string) {},
		"empty directory": func(dir string) { ok(t, os.Mkdir(dir, 0o700)) },
		"original file":   func(dir string) { ok(t, os.Mkdir(dir, 0o700)); originalFile(t, dir) },
	} {
		for range sized(4, 50) {
			dir := filepath.Join(t.TempDir(), "q")
			prepare(dir)
			for _, p := range processes {
				p.tell("put", dir)
			}
			ids := map[string]bool{}
			for _, p := range processes {
				answer := p.hears()
				if strings.HasPrefix(answer, "error") {
					t.Errorf("%s: %s", name, answer)
				}
				ids[answer] = true
			}
			if len(ids) != len(processes) {
				t.Fatalf("%s: %d different answers of %d processes: %v", name, len(ids), len(processes), ids)
			}
			s, err := queue.Open(dir)
			ok(t, err)
			st, err := s.Default().Stats(t.Context())
			ok(t, err)
			same(t, "jobs", int64(len(processes)), st.Ready)
			found, err := s.Check(t.Context(), true)
			ok(t, err)
			same(t, "findings", 0, len(found))
			ok(t, s.Close())
		}
	}
}

func TestCase03_AFirstOpenThatWasKilledIsFinishedByTheNext(t *testing.T) {
	for version, refused := range map[int]bool{0: false, 7: true} { // 7: another program that uses goose
		dir := t.TempDir()
		db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "localqueue.db"))
		ok(t, err)
		for _, statement := range []string{
			"CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))",
			fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, 1)", version),
		} {
			ok(t, second(db.Exec(statement)))
		}
		ok(t, db.Close())
		s, err := queue.Open(dir)
		if refused {
			matches(t, err, queue.ErrForeignFile)
			continue
		}
		ok(t, err)
		works(t, s)
		ok(t, s.Close())
	}
}

func TestCase04_CancelledCallsPoisonNothing(t *testing.T) {
	s := openStore(t, t.TempDir())
	q := s.Default()
	type tally struct{ stored, unknown int }
	var callers []*pending[tally]
	for g := range 10 {
		callers = append(callers, inBackground(func() (n tally, err error) {
			random := rand.New(rand.NewPCG(uint64(g), 4))
			for range sized(200, 1000) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(200))*time.Microsecond)
				_, err := q.Put(ctx, []byte("x"))
				cancel()
				switch {
				case err == nil:
					n.stored++
				case errors.Is(err, queue.ErrOutcomeUnknown):
					n.unknown++
				case !errors.Is(err, context.DeadlineExceeded):
					return n, err
				}
			}
			return n, nil
		}))
	}
	var sum tally
	for _, c := range callers {
		n, err := c.await(t)
		ok(t, err)
		sum.stored += n.stored
		sum.unknown += n.unknown
	}
	st, err := q.Stats(t.Context())
	ok(t, err)
	if got := int(st.Ready); got < sum.stored || got > sum.stored+sum.unknown {
		t.Fatalf("%d jobs; %d puts returned nil, %d an unknown outcome", got, sum.stored, sum.unknown)
	}
	ordinary, err := s.Queue("ordinary")
	ok(t, err)
	for range 100 {
		_, err := ordinary.Put(t.Context(), []byte("x"))
		ok(t, err)
		j, err := ordinary.TryGet(t.Context())
		ok(t, err)
		ok(t, j.Ack(t.Context()))
	}
}

// locksOf are the locks that this process has on a file, as the kernel tells others. It tells them page by page, and leaves
// some out when others come and go meanwhile: it is asked several times.
func locksOf(t testing.TB, path string) int {
	t.Helper()
	st, err := os.Stat(path)
	ok(t, err)
	all := map[string]bool{}
	for range 5 {
		table, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Skip("the kernel's table of locks can't be read: ", err)
		}
		for line := range strings.Lines(string(table)) {
			if lockIs(line, st) {
				_, lock, _ := strings.Cut(line, ":")
				all[lock] = true
			}
		}
	}
	return len(all)
}

// lockIs tells whether a line of the kernel's table is a lock of this process on a file:
// "1: POSIX  ADVISORY  READ  1234 fd:00:5678 128 128".
func lockIs(line string, st os.FileInfo) bool {
	words := strings.Fields(line)
	sys, isUnix := st.Sys().(*syscall.Stat_t)
	return isUnix && len(words) > 5 && words[4] == strconv.Itoa(os.Getpid()) && strings.HasSuffix(words[5], ":"+strconv.FormatUint(sys.Ino, 10))
}

func TestCase05_NothingThatTheProcessDoesDropsItsLocks(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	works(t, s)
	q, ctx := s.Default(), t.Context()
	_, err := q.Stats(ctx)
	ok(t, err)
	path := filepath.Join(dir, "localqueue.db")
	other := startProcess(t)
	wal, err := os.Stat(path + "-wal")
	ok(t, err)
	elsewhere, err := s.Queue("elsewhere")
	ok(t, err)
	first, err := elsewhere.Put(ctx, nil)
	ok(t, err)
	acts := map[string]func() error{
		"stats":          func() error { return second(q.Stats(ctx)) },
		"queues":         func() error { return second(s.Queues(ctx)) },
		"quick check":    func() error { return second(s.Check(ctx, true)) },
		"full check":     func() error { return second(s.Check(ctx, false)) },
		"list":           func() error { return second(q.List(ctx, queue.Acked, queue.ListOptions{})) },
		"show":           func() error { return third(elsewhere.Show(ctx, first.ID)) },
		"purge":          func() error { return second(elsewhere.Purge(ctx, queue.PurgeOptions{Failed: true})) },
		"vacuum":         func() error { return s.Vacuum(ctx) },
		"migrate":        func() error { return second(queue.Migrate(ctx, dir)) },
		"migrate status": func() error { return second(queue.MigrateStatus(ctx, dir)) },
		"second Store": func() error {
			other, err := queue.Open(dir)
			if err != nil {
				return err
			}
			otherQueue, err := other.Queue("elsewhere")
			if err == nil {
				_, err = otherQueue.Put(ctx, nil)
			}
			return errors.Join(err, other.Close())
		},
		"backup": func() error {
			return second(s.Backup(ctx, filepath.Join(t.TempDir(), "copy"), queue.BackupOptions{}))
		},
		"export": func() error {
			for _, err := range s.Export(ctx, queue.ExportOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"inspect": func() error { return second(queue.Inspect(ctx, dir)) },
		"doctor":  func() error { return second(doctor.Examine(ctx, dir)) },
		"second Store of another path": func() error {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(dir, link); err != nil {
				return err
			}
			other, err := queue.Open(link)
			if err != nil {
				return err
			}
			return other.Close()
		},
		"refused open": func() error { _, _ = queue.Open(dir, queue.WithLease(0)); return nil },
		"foreign transaction": func() error {
			return inForeignTx(ctx, dir, func(tx queue.DBTX) error { return second(elsewhere.PutTx(ctx, tx, nil)) })
		},
		"cancelled call": func() error {
			ctx, cancel := context.WithTimeout(ctx, time.Microsecond)
			defer cancel()
			_, _ = elsewhere.Put(ctx, nil)
			return nil
		},
	}
	if locksOf(t, path) == 0 || locksOf(t, path+"-shm") == 0 {
		t.Fatal("an open Store holds no locks")
	}
	for name, act := range acts {
		if err := act(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if locksOf(t, path) == 0 || locksOf(t, path+"-shm") == 0 {
			t.Fatalf("%s dropped the locks", name)
		}
		other.does("visit", dir)
		now, err := os.Stat(path + "-wal")
		ok(t, err)
		if !os.SameFile(wal, now) {
			t.Fatalf("after %s, another process took itself for the last one and replaced the WAL", name)
		}
		works(t, s)
	}
}

func TestCase06_AClaimIsCommittedWhenGetReturns(t *testing.T) {
	w := newWorld(t, shapes[2], storeOpts{Busy: time.Second})
	a, b := w.peer(0), w.peer(1)
	for i := range 20 {
		a.mustPut("x")
		if i%2 == 0 {
			a.mustGet()
		} else { // its caller leaves right after
			ctx, cancel := context.WithCancel(context.Background())
			_, err := a.get(ctx)
			cancel()
			w.ok(err)
		}
		b.counts(queue.Stats{Processing: int64(i + 1)})
		w.ok(b.delete(b.mustPut("y")))
	}
	w.verify()
}

func TestCase07_ParallelShellPutsAreAllStored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "q")
	processes := startProcesses(t, sized(8, 50))
	const each = 4
	for range each {
		for _, p := range processes {
			p.tell("put", dir)
		}
	}
	stored := int64(0)
	for _, p := range processes {
		for range each {
			if answer := p.hears(); !strings.HasPrefix(answer, "error") {
				stored++
			} else {
				t.Error(answer)
			}
		}
	}
	st, err := openStore(t, dir).Default().Stats(t.Context())
	ok(t, err)
	same(t, "jobs", stored, st.Ready)
}
