package queue_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

const nobody = 65534

// nobodysQueue is a queue of another user than root, as a restore or a copy leaves it: without the files beside the database.
func nobodysQueue(t *testing.T) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	dir = filepath.Join(publicDir(t), "q")
	restore(t, queueWith(t, 1), dir, queue.RestoreOptions{})
	ok(t, os.Chown(dir, nobody, nobody))
	ok(t, os.Chown(filepath.Join(dir, "localqueue.db"), nobody, nobody))
	return dir
}

// owners tells whose the files in a directory are, and that directory itself.
func owners(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	ok(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Lstat(path)
		if err != nil {
			return err
		}
		sys := st.Sys().(*syscall.Stat_t)
		all[strings.TrimPrefix(path, dir)] = fmt.Sprintf("%d:%d %v", sys.Uid, sys.Gid, st.Mode())
		return nil
	}))
	return all
}

func allOf(t *testing.T, owner, dir string, wanted ...string) {
	t.Helper()
	all := owners(t, dir)
	for name, is := range all {
		if !strings.HasPrefix(is, owner+" ") {
			t.Errorf("%s%s is of %s, want %s", dir, name, is, owner)
		}
	}
	for _, name := range wanted {
		if all["/"+name] == "" {
			t.Errorf("there is no %s among %v", name, all)
		}
	}
}

// A look by root must not lock the owner out.
func TestWhatRootMakesBesideADatabaseIsOfItsOwner(t *testing.T) {
	dir := nobodysQueue(t)
	s, err := queue.Open(dir)
	ok(t, err)
	ok(t, second(s.Default().TryGet(t.Context())))
	get := inBackground(func() (*queue.Job, error) { return s.Default().Get(context.Background()) })
	for queue.Waiting(s) == 0 {
		runtime.Gosched()
	}
	allOf(t, "65534:65534", dir, "localqueue.lock", "localqueue.line", "localqueue.open", "localqueue.bell", "localqueue.bell.0",
		"localqueue.db-wal", "localqueue.db-shm")
	out, err := inRole(t, "nobody", dirEnv+"="+dir) // beside it, which rings it
	ok(t, err)
	same(t, "the owner is told", "no error<nil>\n", out)
	ok(t, second(get.await(t)))
	ok(t, s.Close())
	out, err = inRole(t, "nobody", dirEnv+"="+dir)
	ok(t, err)
	same(t, "the owner is told", "no error<nil>\n", out)
}

func TestAFileOfRootsThatWasThereIsNotGivenAway(t *testing.T) {
	dir := nobodysQueue(t)
	lock := filepath.Join(dir, "localqueue.lock")
	ok(t, os.WriteFile(lock, nil, 0o600))
	ok(t, second(queue.Migrate(t.Context(), dir)))
	same(t, "its owner", "0:0 -rw-------", owners(t, dir)["/localqueue.lock"])
}

func TestAReplacedQueueKeepsItsOwnerAndTheBitsOfItsModes(t *testing.T) {
	dir, backup := nobodysQueue(t), backupOf(t, 3)
	ok(t, os.Chmod(dir, fs.ModeSetgid|0o770))
	ok(t, os.Chmod(filepath.Join(dir, "localqueue.db"), 0o660))
	_, err := queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: true})
	ok(t, err)
	same(t, "files", map[string]string{"": "65534:65534 dgrwxrwx---", "/localqueue.db": "65534:65534 -rw-rw----"}, owners(t, dir))

	ok(t, os.WriteFile(filepath.Join(dir, "localqueue.db"), nil, 0o600)) // now an empty file
	_, err = queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{})
	ok(t, err)
	allOf(t, "65534:65534", dir, "localqueue.db")
	out, err := inRole(t, "nobody", dirEnv+"="+dir)
	ok(t, err)
	same(t, "the owner is told", "no error<nil>\n", out)
}
