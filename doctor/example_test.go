package doctor_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/localqueue/localqueue/doctor"
	"github.com/localqueue/localqueue/queue"
)

func ExampleExamine() {
	dir, err := os.MkdirTemp("", "localqueue-example-")
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := queue.Open(dir)
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = store.Close() }()

	ctx := context.Background()
	if err := store.Default().Pause(ctx); err != nil {
		log.Panic(err)
	}
	report, err := doctor.Examine(ctx, dir)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("healthy:", report.Healthy())
	for _, f := range report.Findings {
		if f.Code == doctor.Paused {
			fmt.Printf("%s %s, queue %s: %s; %s\n", f.Severity, f.Code, f.Queue, f.Text, f.Advice)
		}
	}
	// Output:
	// healthy: true
	// note paused, queue default: claims are paused, with 0 due; resume it when they are to go on
}
