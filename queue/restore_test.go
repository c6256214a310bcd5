package queue_test

import (
	"bufio"
	"context"
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

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

// queueWith makes a closed queue whose ready jobs are n, and returns its directory.
func queueWith(t testing.TB, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "q")
	s, err := queue.Open(dir)
	ok(t, err)
	ok(t, second(s.Default().PutMany(t.Context(), make([]queue.NewJob, n))))
	ok(t, s.Close())
	return dir
}

// backupOf makes a backup of a queue whose ready jobs are n.
func backupOf(t testing.TB, n int) string {
	t.Helper()
	s := openStore(t, queueWith(t, n))
	dest := filepath.Join(t.TempDir(), "backup")
	ok(t, second(s.Backup(t.Context(), dest, queue.BackupOptions{})))
	return dest
}

func ready(t testing.TB, dir string) int64 {
	t.Helper()
	s, err := queue.Open(dir, queue.MustExist())
	ok(t, err)
	found, err := s.Check(t.Context(), false)
	ok(t, err)
	same(t, "findings", 0, len(found))
	st, err := s.Default().Stats(t.Context())
	ok(t, err)
	ok(t, s.Close())
	return st.Ready
}

func restore(t testing.TB, backup, dir string, opts queue.RestoreOptions) queue.RestoreInfo {
	t.Helper()
	info, err := queue.Restore(t.Context(), backup, dir, opts)
	ok(t, err)
	same(t, "where", dir, info.Dir)
	st, err := os.Stat(filepath.Join(dir, "localqueue.db"))
	ok(t, err)
	same(t, "size", st.Size(), info.Bytes)
	same(t, "mode", os.FileMode(0o600), st.Mode())
	left, err := filepath.Glob(dir + "*.partial*")
	ok(t, err)
	inside, err := filepath.Glob(dir + "/*.partial*")
	ok(t, err)
	same(t, "left", []string(nil), append(left, inside...))
	return info
}

func TestARestoreMakesAQueueWhereThereIsNone(t *testing.T) {
	backup := backupOf(t, 3)
	untouched := content(t, backup)
	for name, make := range map[string]func(dir string){
		"missing": func(string) {},
		"empty":   func(dir string) { ok(t, os.Mkdir(dir, 0o750)) },
		"with other files": func(dir string) {
			ok(t, os.Mkdir(dir, 0o750))
			ok(t, os.WriteFile(filepath.Join(dir, "notes"), nil, 0o644))
			ok(t, os.WriteFile(filepath.Join(dir, "localqueue.bell"), []byte("of a removed one"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new")
			make(dir)
			was, _ := os.Stat(dir)
			for _, replace := range []bool{true, false} { // there is nothing to replace
				info := restore(t, backup, dir, queue.RestoreOptions{Replace: replace})
				same(t, "replaced", "", info.Replaced)
				same(t, "jobs", int64(3), ready(t, dir))
				ok(t, os.Remove(filepath.Join(dir, "localqueue.db")))
			}
			if is, err := os.Stat(dir); was != nil && (err != nil || !os.SameFile(was, is) || was.Mode() != is.Mode()) {
				t.Errorf("the directory was %v, now it is %v", was, is)
			}
			same(t, "the backup", untouched, content(t, backup))
		})
	}
}

func TestAnyClosedQueueIsABackup(t *testing.T) {
	plain := queueWith(t, 2)
	original := t.TempDir()
	originalFile(t, original)
	for name, from := range map[string]string{"a queue": plain, "one of the Python original": original} {
		t.Run(name, func(t *testing.T) {
			untouched := content(t, from)
			dir := filepath.Join(t.TempDir(), "new")
			restore(t, from, dir, queue.RestoreOptions{})
			sound(t, dir)
			same(t, "the backup", untouched, content(t, from))
		})
	}
}

func TestARestoreFromWhatIsNoBackupChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want error
	}{
		"missing":         {func(t *testing.T, dir string) { ok(t, os.Remove(dir)) }, queue.ErrNoQueue},
		"empty directory": {func(*testing.T, string) {}, queue.ErrNoQueue},
		"empty file":      {func(t *testing.T, dir string) { ok(t, os.WriteFile(filepath.Join(dir, "localqueue.db"), nil, 0o600)) }, queue.ErrNoQueue},
		"a file":          {func(t *testing.T, dir string) { ok(t, os.Remove(dir)); ok(t, os.WriteFile(dir, nil, 0o600)) }, queue.ErrNotDirectory},
		"a FIFO":          {func(t *testing.T, dir string) { ok(t, unix.Mkfifo(filepath.Join(dir, "localqueue.db"), 0o600)) }, queue.ErrNoQueue},
		"text":            {func(t *testing.T, dir string) { text(t, dir) }, queue.ErrCorrupt},
		"another program's": {func(t *testing.T, dir string) {
			sqliteFile(t, filepath.Join(dir, "localqueue.db"), "CREATE TABLE people (name TEXT)")
		}, queue.ErrForeignFile},
		"of a newer schema": {func(t *testing.T, dir string) {
			sqliteFile(t, closedQueue(t, dir), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (900, 1)")
		}, queue.ErrNewerSchema},
		"damaged": {func(t *testing.T, dir string) {
			path := closedQueue(t, dir)
			st, err := os.Stat(path)
			ok(t, err)
			damage(t, path, 40*2048, int(st.Size())-40*2048)
		}, queue.ErrCorrupt},
		"cut off": {func(t *testing.T, dir string) { ok(t, os.Truncate(closedQueue(t, dir), 50*2048)) }, queue.ErrCorrupt},
		"unsound": {func(t *testing.T, dir string) {
			sqliteFile(t, closedQueue(t, dir), "UPDATE queues SET ready = ready + 1")
		}, queue.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			from := filepath.Join(base, "backup")
			ok(t, os.Mkdir(from, 0o700))
			c.make(t, from)
			holds := queueWith(t, 1)
			if name != "a FIFO" {
				defer func(before []string) { same(t, "files", before, content(t, base)) }(content(t, base))
			}
			for _, dir := range []string{filepath.Join(base, "new"), holds} {
				_, err := queue.Restore(t.Context(), from, dir, queue.RestoreOptions{Replace: true})
				matches(t, err, c.want)
				contains(t, err, from, dir)
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("not one line: %q", err)
				}
			}
			same(t, "jobs", int64(1), ready(t, holds))
			same(t, "beside it", []string{"q"}, names(t, filepath.Dir(holds)))
		})
	}
}

func text(t *testing.T, dir string) {
	ok(t, os.WriteFile(filepath.Join(dir, "localqueue.db"), []byte(repeat("no database. ", 1000)), 0o600))
}

func TestARestoreFromAQueueWithAWALIsRefused(t *testing.T) {
	from := queueWith(t, 1)
	s := openStore(t, from)
	dir := filepath.Join(t.TempDir(), "new")
	restore(t, from, dir, queue.RestoreOptions{}) // open, but all of it is in the file
	same(t, "jobs", int64(1), ready(t, dir))
	ok(t, second(s.Default().Put(t.Context(), nil)))
	_, err := queue.Restore(t.Context(), from, dir+"2", queue.RestoreOptions{})
	matches(t, err, queue.ErrUnclosed)
	contains(t, err, "localqueue.db-wal")
	_, err = queue.Restore(t.Context(), backupOf(t, 600), dir+"2", queue.RestoreOptions{Progress: func(int, int) {}})
	ok(t, err)
}

func TestARestoreToWhereItCannotGoChangesNothing(t *testing.T) {
	backup := backupOf(t, 3)
	for name, c := range map[string]struct {
		dir     string
		make    func(dir string)
		replace bool
		want    error
	}{
		"a queue": {"queue", func(dir string) { closedQueue(t, dir) }, false, queue.ErrExists},
		"a WAL without its queue": {"wal", func(dir string) {
			ok(t, os.Mkdir(dir, 0o700))
			ok(t, os.WriteFile(filepath.Join(dir, "localqueue.db-wal"), []byte("of another"), 0o600))
		}, true, queue.ErrReplaced},
		"a file":            {"file", func(dir string) { ok(t, os.WriteFile(dir, nil, 0o600)) }, true, queue.ErrNotDirectory},
		"no parent":         {"no/where", func(string) {}, true, queue.ErrNotDirectory},
		"the backup itself": {backup, func(string) {}, true, queue.ErrInvalid},
		"inside the backup": {filepath.Join(backup, "new"), func(string) {}, true, queue.ErrInvalid},
		"in memory":         {":memory:", func(string) {}, true, queue.ErrInMemory},
	} {
		t.Run(name, func(t *testing.T) {
			base, dir := t.TempDir(), c.dir
			if !filepath.IsAbs(dir) && dir != ":memory:" {
				dir = filepath.Join(base, dir)
			}
			c.make(dir)
			before := append(content(t, base), content(t, backup)...)
			_, err := queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: c.replace})
			matches(t, err, c.want)
			same(t, "files", before, append(content(t, base), content(t, backup)...))
		})
	}
	link := filepath.Join(t.TempDir(), "link")
	ok(t, os.Symlink("nowhere", link))
	_, err := queue.Restore(t.Context(), backup, link, queue.RestoreOptions{Replace: true})
	matches(t, err, queue.ErrNotDirectory)
	same(t, "beside it", []string{"link"}, names(t, filepath.Dir(link)))
	within := filepath.Join(queueWith(t, 1), "backup")
	ok(t, os.Rename(backup, within))
	_, err = queue.Restore(t.Context(), within, filepath.Dir(within), queue.RestoreOptions{Replace: true})
	matches(t, err, queue.ErrInvalid)
	same(t, "jobs", int64(1), ready(t, filepath.Dir(within)))
}

func TestAReplacedQueueIsKeptAndItsPlaceIsTaken(t *testing.T) {
	backup := backupOf(t, 3)
	dir := queueWith(t, 1)
	ok(t, os.Chmod(dir, 0o750))
	link := filepath.Join(t.TempDir(), "link")
	ok(t, os.Symlink(dir, link))
	now := time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC)
	clock := queue.WithClock(func() time.Time { return now })
	for n, name := range []string{dir, link} {
		info, err := queue.Restore(t.Context(), backup, name, queue.RestoreOptions{Replace: true}, clock)
		ok(t, err)
		same(t, "where", dir, info.Dir)
		same(t, "replaced", fmt.Sprintf("%s.replaced-20300102T030405.00%dZ", dir, 6+n), info.Replaced)
		same(t, "jobs now", int64(3), ready(t, dir))
		same(t, "jobs before", int64(1+2*n), ready(t, info.Replaced))
		st, err := os.Stat(dir)
		ok(t, err)
		same(t, "mode", os.FileMode(0o750), st.Mode().Perm())
	}
}

func init() {
	roles["crash"] = crash
	roles["replace"] = replaceQueue
	roles["open-again"] = openAgain
}

// crash puts a job and dies, so that the job is only in the WAL.
func crash() {
	s, err := queue.Open(os.Getenv(dirEnv))
	if err == nil {
		_, err = s.Default().Put(context.Background(), []byte("in the WAL"))
	}
	if err == nil {
		err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	fmt.Println("error:", err)
}

func TestTheWALOfAReplacedQueueGoesWithIt(t *testing.T) {
	backup, dir := backupOf(t, 3), queueWith(t, 1)
	_, err := inRole(t, "crash", dirEnv+"="+dir)
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(dir, "localqueue.db-wal")); err != nil || st.Size() == 0 {
		t.Fatal("there is no WAL")
	}
	info := restore(t, backup, dir, queue.RestoreOptions{Replace: true})
	same(t, "jobs now", int64(3), ready(t, dir))
	same(t, "jobs before", int64(2), ready(t, info.Replaced))
}

const backupEnv = "LOCALQUEUE_TEST_BACKUP"

// replaceQueue replaces a queue. In the middle of it, it says so and waits for a line.
func replaceQueue() {
	in := bufio.NewReader(os.Stdin)
	asked := false
	_, err := queue.Restore(context.Background(), os.Getenv(backupEnv), os.Getenv(dirEnv), queue.RestoreOptions{Replace: true, Progress: func(int, int) {
		if !asked {
			asked = true
			fmt.Println("inside")
			_, _ = in.ReadString('\n')
		}
	}})
	fmt.Println("done:", err)
}

func TestWhoOpensAQueueThatIsBeingReplacedWaitsForIt(t *testing.T) {
	backup, dir := backupOf(t, 3), queueWith(t, 1)
	other := startAs(t, "replace", backupEnv+"="+backup, dirEnv+"="+dir)
	same(t, "the other one is", "inside", other.hears())
	ok(t, other.cmd.Process.Signal(syscall.SIGSTOP))
	for name, open := range map[string]func() error{
		"open": func() error { return second(queue.Open(dir, queue.WithBusyTimeout(50*time.Millisecond))) },
		"migrate": func() error {
			return second(queue.Migrate(t.Context(), dir, queue.WithBusyTimeout(0)))
		},
		"restore": func() error {
			return second(queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: true}))
		},
	} {
		err := open()
		if !errors.Is(err, queue.ErrBusy) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v; want ErrBusy that names the directory", name, err)
		}
	}
	ok(t, other.cmd.Process.Signal(syscall.SIGCONT))
	opening := inBackground(func() (*queue.Store, error) { return queue.Open(dir, queue.WithBusyTimeout(patience)) })
	opening.stillWaits(t)
	other.tell("go on")
	same(t, "the other one", "done: <nil>", other.hears())
	s, err := opening.await(t)
	ok(t, err)
	st, err := s.Default().Stats(t.Context())
	ok(t, err)
	same(t, "jobs", int64(3), st.Ready)
	ok(t, s.Close())
}

// openAgain opens and closes a queue as fast as it can until its stdin ends, and says what jobs it saw.
func openAgain() {
	ended := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return
		default:
		}
		s, err := queue.Open(os.Getenv(dirEnv), queue.MustExist(), queue.WithBusyTimeout(time.Minute))
		var st queue.Stats
		if err == nil {
			st, err = s.Default().Stats(context.Background())
			err = errors.Join(err, s.Close())
		}
		if err != nil {
			fmt.Println("error:", err)
			return
		}
		fmt.Println(st.Ready)
		time.Sleep(rand.N(30 * time.Millisecond)) // there must be moments when nobody has it open
	}
}

func TestOpenersBesideARestoreAlwaysFindAWholeQueue(t *testing.T) {
	backups := []string{backupOf(t, 3), backupOf(t, 5)}
	dir := queueWith(t, 3)
	seen := make(chan string)
	for range 2 {
		p := startAs(t, "open-again", dirEnv+"="+dir)
		go func() {
			for {
				line, err := p.out.ReadString('\n')
				if err != nil {
					return
				}
				select {
				case seen <- strings.TrimSpace(line):
				case <-t.Context().Done():
				}
			}
		}()
		defer func() { ok(t, p.in.Close()) }()
	}
	deadline := time.After(time.Duration(sized(4, 60)) * patience)
	for n := range sized(12, 200) {
		for done := false; !done; {
			select {
			case jobs := <-seen:
				if jobs != "3" && jobs != "5" {
					t.Fatalf("an opener saw %q", jobs)
				}
			case <-deadline:
				t.Fatal("the queue was always open")
			case <-time.After(time.Millisecond):
			}
			info, err := queue.Restore(t.Context(), backups[(n+1)%2], dir, queue.RestoreOptions{Replace: true})
			if done = err == nil; done {
				ok(t, os.RemoveAll(info.Replaced))
			} else {
				matches(t, err, queue.ErrBusy)
			}
		}
		want := []string{"3", "5"}[(n+1)%2]
		for jobs := ""; jobs != want; {
			select {
			case jobs = <-seen:
				if jobs != "3" && jobs != "5" {
					t.Fatalf("an opener saw %q", jobs)
				}
			case <-deadline:
				t.Fatal("no opener sees the restored queue")
			}
		}
	}
}

func TestAMountPointIsNotReplaced(t *testing.T) {
	backup := backupOf(t, 3)
	dir := filepath.Join(t.TempDir(), "q")
	ok(t, os.Mkdir(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("nothing can be mounted here: ", err)
	}
	t.Cleanup(func() { ok(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	restore(t, backup, dir, queue.RestoreOptions{}) // that is no trouble
	same(t, "jobs", int64(3), ready(t, dir))
	before := content(t, dir)
	_, err := queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: true})
	matches(t, err, errors.ErrUnsupported)
	contains(t, err, "mount point")
	same(t, "files", before, content(t, dir))
	same(t, "beside it", []string{"q"}, names(t, filepath.Dir(dir)))
}

func TestARestoreThatEndsEarlyChangesNothing(t *testing.T) {
	s := filledQueue(t, t.TempDir())
	backup := filepath.Join(t.TempDir(), "backup")
	ok(t, second(s.Backup(t.Context(), backup, queue.BackupOptions{})))
	dir := queueWith(t, 1)
	for name, spoil := range map[string]struct {
		run  func(cancel func())
		want error
	}{
		"cancelled": {func(cancel func()) { cancel() }, context.Canceled},
		"the backup is written to": {func(func()) {
			ok(t, os.Chtimes(filepath.Join(backup, "localqueue.db"), time.Now(), time.Now()))
		}, queue.ErrUnclosed},
	} {
		before := content(t, filepath.Dir(dir))
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		_, err := queue.Restore(ctx, backup, dir, queue.RestoreOptions{Replace: true, Progress: func(int, int) {
			if calls++; calls == 1 {
				spoil.run(cancel)
			}
		}})
		cancel()
		matches(t, err, spoil.want)
		same(t, name, before, content(t, filepath.Dir(dir)))
	}
}

func TestARestoreToAFullDiskSaysSoAndChangesNothing(t *testing.T) {
	s := filledQueue(t, t.TempDir())
	backup := filepath.Join(t.TempDir(), "backup")
	ok(t, second(s.Backup(t.Context(), backup, queue.BackupOptions{})))
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("no small disk can be mounted here: ", err)
	}
	t.Cleanup(func() { ok(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	ok(t, os.Mkdir(filepath.Join(disk, "empty"), 0o700))
	for _, dir := range []string{filepath.Join(disk, "new"), filepath.Join(disk, "empty")} {
		_, err := queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{})
		matches(t, err, queue.ErrDiskFull)
		same(t, "files", []string(nil), content(t, disk))
	}
}

func TestCase05_ARestoreDropsNoLocks(t *testing.T) {
	from := queueWith(t, 2)
	s := openStore(t, from) // nothing written, so that the restore reads the file
	path := filepath.Join(from, "localqueue.db")
	before := locksOf(t, path)
	if before == 0 {
		t.Fatal("an open Store holds no locks")
	}
	for n := range 3 {
		restore(t, from, filepath.Join(t.TempDir(), strconv.Itoa(n)), queue.RestoreOptions{})
		same(t, "locks", before, locksOf(t, path))
	}
	ok(t, second(s.Default().Put(t.Context(), nil)))
}
