package queue_test

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

func init() {
	roles["stranger"] = stranger
}

// stranger is a program that has read the database and has it open, but knows nothing of Stores. Any line ends it.
func stranger() {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(os.Getenv(dirEnv), "localqueue.db"))
	var jobs int
	if err == nil {
		err = db.QueryRow("SELECT count(*) FROM messages").Scan(&jobs)
	}
	fmt.Println("jobs:", jobs, err)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Println("closed:", db.Close())
}

func TestAQueueThatAnotherProgramHasOpenIsNotReplaced(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system doesn't tell who holds a lock")
	}
	backup, dir := backupOf(t, 3), queueWith(t, 1)
	replace := func(progress func(done, total int)) error {
		return second(queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: true, Progress: progress}))
	}
	refused := func(p *process, err error) {
		t.Helper()
		matches(t, err, queue.ErrBusy)
		contains(t, err, "is open in process "+strconv.Itoa(p.cmd.Process.Pid), dir)
		p.tell("close")
		same(t, "the other one", "closed: <nil>", p.hears())
		same(t, "beside it", []string{"q"}, names(t, filepath.Dir(dir)))
	}
	p := startAs(t, "stranger", dirEnv+"="+dir)
	same(t, "the other one", "jobs: 1 <nil>", p.hears())
	refused(p, replace(nil))

	p = nil // one that comes while the copy is made
	err := replace(func(int, int) {
		if p == nil {
			p = startAs(t, "stranger", dirEnv+"="+dir)
			same(t, "the other one", "jobs: 1 <nil>", p.hears())
		}
	})
	refused(p, err)

	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "localqueue.db")) // in this process
	ok(t, err)
	ok(t, db.QueryRow("SELECT count(*) FROM messages").Scan(new(int)))
	matches(t, replace(nil), queue.ErrBusy)
	ok(t, db.Close())
	ok(t, replace(nil))
	same(t, "jobs", int64(3), ready(t, dir))
}

// What is inside the directory of a queue would go with it when that is replaced.
func TestNothingIsPutInsideTheDirectoryOfAQueue(t *testing.T) {
	backup, around := backupOf(t, 3), queueWith(t, 1)
	s := openStore(t, queueWith(t, 1))
	ok(t, os.MkdirAll(filepath.Join(around, "sub", "empty"), 0o700))
	link := filepath.Join(t.TempDir(), "link")
	ok(t, os.Symlink(filepath.Join(around, "sub"), link))
	before := content(t, around)
	for _, dir := range []string{filepath.Join(around, "new"), filepath.Join(around, "sub", "new"), filepath.Join(link, "new"), link + "/../new"} {
		_, err := s.Backup(t.Context(), dir, queue.BackupOptions{})
		matches(t, err, queue.ErrInvalid)
		contains(t, err, "inside", around)
		_, err = queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{})
		matches(t, err, queue.ErrInvalid)
		contains(t, err, "inside", around)
	}
	matches(t, second(queue.Restore(t.Context(), backup, filepath.Join(around, "sub", "empty"), queue.RestoreOptions{})), queue.ErrInvalid)
	same(t, "files", before, content(t, around))
	same(t, "jobs", int64(1), ready(t, around))
}

func TestAPlaceThatIsRemovedMeanwhileIsSaidToBeGone(t *testing.T) {
	from := queueWith(t, 1)
	s := openStore(t, from)
	for name, do := range map[string]func(dest string, progress func(done, total int)) error{
		"backup": func(dest string, progress func(done, total int)) error {
			return second(s.Backup(t.Context(), dest, queue.BackupOptions{Progress: progress}))
		},
		"restore": func(dest string, progress func(done, total int)) error {
			return second(queue.Restore(t.Context(), from, dest, queue.RestoreOptions{Progress: progress}))
		},
	} {
		base := filepath.Join(t.TempDir(), "base")
		ok(t, os.Mkdir(base, 0o700))
		err := do(filepath.Join(base, "new"), func(int, int) { ok(t, os.RemoveAll(base)) })
		matches(t, err, queue.ErrNotDirectory)
		contains(t, err, "removed", base)
		if errors.Is(err, queue.ErrIO) || errors.Is(err, queue.ErrNoQueue) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(base); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v; want that it stays away", name, err)
		}
	}
}
