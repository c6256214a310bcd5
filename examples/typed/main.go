// Typed puts a few values of a Go type, lets a Worker drain them, and prints what became of each.
//
//	go run ./examples/typed [directory]
//
// Without a directory it uses one of its own and removes it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

// Deploy is the work: which version of which app goes out.
type Deploy struct {
	App     string `json:"app"`
	Version string `json:"version"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "typed:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	dir, done, err := directory(args)
	if err != nil {
		return err
	}
	defer done()

	// Failed attempts are logged at info; this program prints its own account of them.
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	q, err := generics.Open[Deploy](dir, queue.WithQueue("deploys"), queue.WithLogger(quiet))
	if err != nil {
		return err
	}
	defer q.Close()

	ctx := context.Background()
	results, err := q.PutMany(ctx, []Deploy{{"web", "v42"}, {"api", "v7"}, {"", "v1"}})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, len(results), "deploys put")

	w := generics.NewWorker(q, func(ctx context.Context, job *generics.Job[Deploy]) error {
		switch {
		case job.Data.App == "":
			return generics.Permanent(errors.New("no app named"))
		case job.Data.App == "api" && job.Attempt == 1:
			return errors.New("host not reachable")
		}
		fmt.Fprintf(out, "%s %s is out, attempt %d\n", job.Data.App, job.Data.Version, job.Attempt)
		return nil
	},
		generics.Concurrency(1),
		generics.Backoff(func(attempt int) time.Duration { return time.Duration(attempt) * 50 * time.Millisecond }),
		generics.UntilDrained(),
	)
	if err := w.Run(ctx); err != nil {
		return err
	}

	page, err := q.ListFailed(ctx, queue.ListOptions{})
	if err != nil {
		return err
	}
	for _, job := range page.Jobs {
		fmt.Fprintf(out, "%+v failed: %s (%s)\n", job.Data, job.LastError, job.Reason)
	}
	return nil
}

// directory is the one named on the command line, or a temporary one.
func directory(args []string) (dir string, done func(), err error) {
	if len(args) > 0 {
		return args[0], func() {}, nil
	}
	dir, err = os.MkdirTemp("", "localqueue-typed-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
