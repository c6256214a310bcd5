package queue_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

// What Inspect tells of a directory that others hold, or that isn't what it should be.

func TestInspectTellsOfARestoreThatDoesNotEnd(t *testing.T) {
	backup, dir := backupOf(t, 3), queueWith(t, 1)
	looks := 0
	restoring := func(done, total int) {
		if looks++; looks > 1 {
			return
		}
		f := inspect(t, dir, queue.WithBusyTimeout(20*time.Millisecond))
		same(t, "restoring", true, f.Restoring)
		if runtime.GOOS == "linux" {
			same(t, "who", []queue.Opener{{PID: os.Getpid(), Stores: 1}}, f.Openers)
		}
		matches(t, second(queue.Open(dir, queue.WithBusyTimeout(20*time.Millisecond))), queue.ErrBusy)
	}
	restore(t, backup, dir, queue.RestoreOptions{Replace: true, Progress: restoring})
	if looks == 0 {
		t.Fatal("the restore told of no progress")
	}
	same(t, "restoring after it", false, inspect(t, dir).Restoring)
	openStore(t, dir)
	same(t, "restoring while a Store is open", false, inspect(t, dir).Restoring)
}

// A restore that ends while Inspect looks is none of its business.
func TestInspectWaitsForARestoreToEnd(t *testing.T) {
	backup, dir := backupOf(t, 3), queueWith(t, 1)
	looked := make(chan *queue.Facts, 1)
	looks := 0
	restoring := func(done, total int) {
		if looks++; looks == 1 {
			go func() {
				f, err := queue.Inspect(t.Context(), dir, queue.WithBusyTimeout(patience))
				if err != nil {
					t.Error(err)
				}
				looked <- f
			}()
		}
	}
	restore(t, backup, dir, queue.RestoreOptions{Replace: true, Progress: restoring})
	if f := <-looked; f != nil {
		same(t, "restoring", false, f.Restoring)
	}
}

func TestInspectTellsWhoIsStopped(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	dir := queueWith(t, 1)
	other := startAs(t, "idle", dirEnv+"="+dir)
	same(t, "the other one is", "open", other.hears())
	becomes := func(stopped bool) {
		t.Helper()
		want := []queue.Opener{{PID: other.cmd.Process.Pid, Stores: 1, Stopped: stopped}}
		for deadline := time.Now().Add(patience); ; {
			got := inspect(t, dir).Openers
			if len(got) == 1 && got[0] == want[0] {
				return
			}
			if time.Now().After(deadline) {
				same(t, "openers", want, got)
				return
			}
		}
	}
	becomes(false)
	other.signal(syscall.SIGSTOP)
	t.Cleanup(func() { _ = other.cmd.Process.Signal(syscall.SIGCONT) })
	becomes(true)
	other.signal(syscall.SIGCONT)
	becomes(false)
}

func TestInspectLooksBehindALinkForTheDatabase(t *testing.T) {
	dir, elsewhere := queueWith(t, 1), t.TempDir()
	path, behind := filepath.Join(dir, "localqueue.db"), filepath.Join(elsewhere, "jobs.db")
	ok(t, os.Rename(path, behind))
	ok(t, os.Symlink(behind, path))
	st, err := os.Stat(behind)
	ok(t, err)
	before := append(content(t, dir), content(t, elsewhere)...)
	f := inspect(t, dir)
	same(t, "bytes", st.Size(), f.FileBytes)
	for _, file := range f.Files {
		if file.Name == "localqueue.db" {
			same(t, "where it leads", behind, file.Link)
		} else {
			same(t, "where "+file.Name+" leads", "", file.Link)
		}
	}
	same(t, "files", before, append(content(t, dir), content(t, elsewhere)...))
	ok(t, second(openStore(t, dir).Default().Put(t.Context(), nil)))
	if f := inspect(t, dir); f.WALBytes == 0 || !f.WALKnown || f.WALFrames == 0 {
		t.Errorf("of the WAL behind the link it tells %d bytes, known %v, %d frames", f.WALBytes, f.WALKnown, f.WALFrames)
	}
}

// readOnlyMount shows a directory on a file system that can't be written.
func readOnlyMount(t *testing.T, dir string) string {
	t.Helper()
	at := t.TempDir()
	if err := unix.Mount(dir, at, "", unix.MS_BIND, ""); err != nil {
		t.Skip("nothing can be mounted here: ", err)
	}
	t.Cleanup(func() { ok(t, unix.Unmount(at, unix.MNT_DETACH)) })
	ok(t, unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	return at
}

func TestInspectSaysThatTheFileSystemIsReadOnly(t *testing.T) {
	f := inspect(t, readOnlyMount(t, queueWith(t, 1)))
	matches(t, f.Err, queue.ErrReadOnly)
	matches(t, f.Err, unix.EROFS)
	matches(t, f.WriteErr, unix.EROFS)
	if text := f.Err.Error(); strings.Contains(text, "no such file") || strings.Contains(text, "permissions") {
		t.Errorf("it says %q", text)
	}
	same(t, "schema known", false, f.SchemaKnown())
}

func TestInspectKnowsNoFiguresOfAWALOnAReadOnlyFileSystem(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	s := openStore(t, dir)
	works(t, s)
	for _, name := range []string{"localqueue.db", "localqueue.db-wal", "localqueue.db-shm"} { // as a killed process leaves them
		copyFile(t, filepath.Join(dir, name), filepath.Join(copied, name))
	}
	f := inspect(t, readOnlyMount(t, copied))
	if f.WALBytes == 0 || f.WALKnown || f.WALFrames != 0 {
		t.Errorf("of the WAL it tells %d bytes, known %v, %d frames (%v)", f.WALBytes, f.WALKnown, f.WALFrames, f.Err)
	}
}
