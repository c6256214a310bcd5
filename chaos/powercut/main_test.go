package powercut

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roleEnv makes this test binary play a part instead of running tests; roles are the parts.
const roleEnv = "LOCALQUEUE_POWERCUT_ROLE"

var roles = map[string]func() error{"client": client, "opener": opener}

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
