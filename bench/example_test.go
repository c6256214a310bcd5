//go:build unix

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/localqueue/localqueue/bench"
)

// A program that measures is started again as the processes it measures: it has to notice.
func ExampleRun() {
	if len(os.Args) == 2 && os.Args[1] == "child" {
		os.Exit(bench.Child())
	}
	report, err := bench.Run(context.Background(), bench.Config{
		Scenarios: []string{"contention"},
		Processes: []int{1, 8},
		Duration:  5 * time.Second,
		Command:   []string{os.Args[0], "child"},
	})
	if err != nil && !errors.Is(err, bench.ErrFailed) {
		fmt.Println(err)
		return
	}
	for _, run := range report.Runs {
		fmt.Printf("%s: %.0f jobs/s, fairness %.2f\n", run.Case, run.Roles[0].PerSecond, run.Roles[0].Jain)
	}
}
