package queue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

func init() {
	roles["umask"] = umaskRole
	roles["nobody"] = nobodyRole
}

const dirEnv = "LOCALQUEUE_TEST_DIR"

// umaskRole makes a queue under a umask that takes nothing away, and prints what it made, while it is open.
func umaskRole() {
	syscall.Umask(0)
	dir := os.Getenv(dirEnv)
	s, err := queue.Open(filepath.Join(dir, "a", "b"))
	if err == nil {
		_, err = s.Default().Put(context.Background(), []byte("x"))
	}
	if err == nil {
		_, err = s.Default().TryGet(context.Background())
	}
	if err == nil {
		err = filepath.Walk(filepath.Join(dir, "a"), func(path string, info os.FileInfo, err error) error {
			if err == nil {
				fmt.Println(strings.TrimPrefix(path, dir), info.Mode())
			}
			return err
		})
	}
	if err != nil {
		fmt.Println(err)
	}
}

// nobodyRole opens a queue and puts a job as a user without rights, and prints the names of the errors.
func nobodyRole() {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			fmt.Println(err)
			return
		}
	}
	s, err := queue.Open(os.Getenv(dirEnv))
	if err == nil {
		_, err = s.Default().Put(context.Background(), []byte("x"))
	}
	switch {
	case errors.Is(err, queue.ErrReadOnly):
		fmt.Print("ErrReadOnly: ")
	case err == nil:
		fmt.Print("no error")
	}
	fmt.Println(err)
}

// publicDir makes a directory that every user can reach.
func publicDir(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "localqueue-test-")
	ok(t, err)
	t.Cleanup(func() { ok(t, os.RemoveAll(base)) })
	ok(t, os.Chmod(base, 0o755))
	return base
}

var permissionCases = []fileCase{
	{"Rule41_WhatIsMadeIsForTheOwnerOnlyWhateverTheUmask", func(t *testing.T) {
		out, err := inRole(t, "umask", dirEnv+"="+t.TempDir())
		ok(t, err)
		same(t, "made", []string{
			"/a drwx------", "/a/b drwx------", "/a/b/localqueue.bell -rw-------", "/a/b/localqueue.db -rw-------", "/a/b/localqueue.db-shm -rw-------",
			"/a/b/localqueue.db-wal -rw-------", "/a/b/localqueue.line -rw-------", "/a/b/localqueue.lock -rw-------",
			"/a/b/localqueue.open -rw-------",
		}, strings.Split(strings.TrimSpace(out), "\n"))
	}},
	{"Rule41_AnExistingDirectoryIsLeftAsItIs", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "q")
		ok(t, os.Mkdir(dir, 0o700))
		ok(t, os.Chmod(dir, 0o751))
		works(t, openStore(t, dir))
		st, err := os.Stat(dir)
		ok(t, err)
		same(t, "mode", os.FileMode(0o751)|os.ModeDir, st.Mode())
	}},
	{"Rule42_ADirectoryThatCannotBeWrittenSaysSo", func(t *testing.T) {
		for _, c := range []struct {
			name string
			make func(t *testing.T, base, dir string)
		}{
			{"no queue yet", func(t *testing.T, _, dir string) { ok(t, os.Mkdir(dir, 0o555)) }},
			{"its parent", func(t *testing.T, base, _ string) { ok(t, os.Chmod(base, 0o555)) }},
			{"another's files", func(t *testing.T, _, dir string) {
				ok(t, os.Mkdir(dir, 0o755))
				closedQueue(t, dir)
				ok(t, os.Chmod(filepath.Join(dir, "localqueue.lock"), 0o400))
				ok(t, os.Chmod(filepath.Join(dir, "localqueue.db"), 0o400))
				ok(t, os.Chmod(dir, 0o555))
			}},
			{"files that all can read", func(t *testing.T, _, dir string) {
				ok(t, os.Mkdir(dir, 0o755))
				closedQueue(t, dir)
				ok(t, os.Chmod(filepath.Join(dir, "localqueue.lock"), 0o666))
				ok(t, os.Chmod(filepath.Join(dir, "localqueue.db"), 0o444))
				ok(t, os.Chmod(dir, 0o555))
			}},
			{"only the directory", func(t *testing.T, _, dir string) {
				ok(t, os.Mkdir(dir, 0o755))
				closedQueue(t, dir)
				ok(t, os.Chmod(filepath.Join(dir, "localqueue.lock"), 0o666))
				ok(t, os.Chmod(filepath.Join(dir, "localqueue.db"), 0o666))
				ok(t, os.Chmod(dir, 0o555))
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				base := publicDir(t)
				dir := filepath.Join(base, "q")
				c.make(t, base, dir)
				before := content(t, base)
				out, err := inRole(t, "nobody", dirEnv+"="+dir)
				ok(t, err)
				if !strings.HasPrefix(out, "ErrReadOnly: ") || !strings.Contains(out, dir) {
					t.Errorf("a user without rights is told: %s", out)
				}
				same(t, "files", before, content(t, base))
				_ = os.Chmod(dir, 0o700)
				_ = os.Chmod(base, 0o700)
			})
		}
	}},
}
