//go:build unix

package bench_test

import (
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/bench"
)

// TestMain lets this binary play the processes of the benchmarks that its tests run.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"bench", "child"}) {
		os.Exit(bench.Child())
	}
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // for the processes: with the race detector each would sleep a second at its end
	}
	goleak.VerifyTestMain(m)
}
