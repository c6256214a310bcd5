package queue_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roleEnv names the role that this test binary plays when a test has started it again as another process.
const roleEnv = "LOCALQUEUE_TEST_ROLE"

// roles are the parts a process started by a test can play. A file with a role adds it in its init.
var roles = map[string]func(){}

// atEnd is what runs after the last test and before the search for leaked goroutines.
var atEnd []func() error

// roleEnviron is the environment of a process that plays a role. A binary with the race detector sleeps for a second when
// it ends, unless told not to.
func roleEnviron(role string, more ...string) []string {
	return append(append(os.Environ(), roleEnv+"="+role, "GORACE=atexit_sleep_ms=0"), more...)
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		play, ok := roles[role]
		if !ok {
			fmt.Fprintf(os.Stderr, "no role %q\n", role)
			os.Exit(2)
		}
		play()
		os.Exit(0)
	}
	code := m.Run()
	for _, end := range atEnd {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
