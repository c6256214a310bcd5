//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// orderEnv tells this test binary to play a role, when a test has started it again as another process.
const orderEnv = "LOCALQUEUE_CHAOS_ORDER"

func TestMain(m *testing.M) {
	text := os.Getenv(orderEnv)
	if text == "" {
		goleak.VerifyTestMain(m)
		return
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.play()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", o.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}
