package iofault

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roleEnv names the role that this test binary plays when a test has started it again as another process.
const roleEnv = "LOCALQUEUE_TEST_ROLE"

// patience bounds every wait of a test. It is long, since it only shows when something hangs.
const patience = 30 * time.Second

// long runs every fault at every place; otherwise a sample of the places is tried.
var long = os.Getenv("LOCALQUEUE_IOFAULTS") == "full"

var roles = map[string]func() error{"child": child, "populate": populate}

// sound keeps a planted fault from a process: what is tried is the operations, not what prepares and examines them.
const sound = "LOCALQUEUE_FAULT="

// childEnv is the environment of this binary in a role. One with the race detector sleeps for a second when it ends, unless
// told not to.
func childEnv(role string, more ...string) []string {
	return append(append(os.Environ(), roleEnv+"="+role, "GORACE=atexit_sleep_ms=0"), more...)
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := roles[role](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// place makes a directory for a queue, in memory where there is such a file system: what is tried here are answers, not disks.
func place(t testing.TB) string {
	t.Helper()
	base := ""
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() && os.Getenv("TMPDIR") == "" {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "localqueue-iofault-")
	ok(t, err)
	t.Cleanup(func() { ok(t, os.RemoveAll(dir)) })
	return dir
}
