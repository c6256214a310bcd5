package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/doctor"
	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

func examineAsNobody(dir string) {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			fmt.Println(err)
			return
		}
	}
	r, err := doctor.Examine(context.Background(), dir)
	if err != nil {
		fmt.Printf("%v (ErrReadOnly: %v)", err, errors.Is(err, queue.ErrReadOnly))
		return
	}
	fmt.Print(strings.Join(codes(r), ", "))
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

// asNobody examines a directory as a user who may only read it.
func asNobody(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+dir, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.Output()
	ok(t, err)
	return string(out)
}

func TestADirectoryThatThisUserCanOnlyReadIsAFinding(t *testing.T) {
	for _, live := range []bool{false, true} { // without a WAL SQLite can't even read it
		dir := filepath.Join(publicDir(t), "q")
		if live {
			queuetest.OpenDir(t, dir)
		} else {
			fill(t, dir, nil)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		ok(t, err)
		for _, f := range files {
			ok(t, os.Chmod(f, 0o444))
		}
		ok(t, os.Chmod(dir, 0o555))
		t.Cleanup(func() { ok(t, os.Chmod(dir, 0o700)) })
		got := asNobody(t, dir)
		want := "problem read_only, note dir_mode, note owner, note file_mode"
		if os.Getuid() != 0 {
			want = strings.Replace(want, ", note owner", "", 1)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("live %v (-want +got):\n%s", live, diff)
		}
	}
}

func TestADirectoryThatThisUserCantEnterIsAnError(t *testing.T) {
	dir := filepath.Join(publicDir(t), "q")
	fill(t, dir, nil)
	if os.Getuid() != 0 {
		ok(t, os.Chmod(dir, 0))
		t.Cleanup(func() { ok(t, os.Chmod(dir, 0o700)) })
	}
	if got := asNobody(t, dir); !strings.Contains(got, "may not look at "+dir) || !strings.HasSuffix(got, "(ErrReadOnly: true)") || strings.Contains(got, "written") {
		t.Errorf("it says %q", got)
	}
}
