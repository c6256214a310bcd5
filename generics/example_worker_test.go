package generics_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

func ExampleWorker() {
	q, done := openDeploys(queue.WithLease(time.Minute))
	defer done()

	// In a program: ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if _, err := q.Put(ctx, Deploy{"web", "v42"}); err != nil {
		log.Fatal(err)
	}
	w := generics.NewWorker(q, func(ctx context.Context, job *generics.Job[Deploy]) error {
		fmt.Println("deploying", job.Data.App)
		return nil
	},
		generics.Concurrency(4),
		generics.JobTimeout(10*time.Minute),
		generics.Grace(30*time.Second),
		generics.OnDone(func(e generics.Event) {
			fmt.Println("job", e.Job.ID, e.Outcome)
			stop()
		}),
	)
	if err := w.Run(ctx); err != nil { // until ctx ends
		log.Fatal(err)
	}
	// Output:
	// deploying web
	// job 1 acked
}

func ExamplePermanent() {
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	if _, err := q.Put(ctx, Deploy{App: "", Version: "v42"}); err != nil {
		log.Fatal(err)
	}
	w := generics.NewWorker(q, func(ctx context.Context, job *generics.Job[Deploy]) error {
		if job.Data.App == "" {
			return generics.Permanent(errors.New("no app named"))
		}
		return nil
	}, generics.UntilEmpty())
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	page, err := q.ListFailed(ctx, queue.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.Jobs[0].Reason, page.Jobs[0].LastError)
	// Output: permanent no app named
}

func ExampleSnooze() {
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	if _, err := q.Put(ctx, Deploy{"web", "v42"}); err != nil {
		log.Fatal(err)
	}
	frozen := true
	w := generics.NewWorker(q, func(ctx context.Context, job *generics.Job[Deploy]) error {
		fmt.Println("attempt", job.Attempt)
		if frozen {
			frozen = false
			return generics.Snooze(10 * time.Millisecond) // no attempt used
		}
		return nil
	}, generics.UntilDrained())
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// attempt 1
	// attempt 1
}

func ExampleRetryAfter() {
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	if _, err := q.Put(ctx, Deploy{"web", "v42"}); err != nil {
		log.Fatal(err)
	}
	w := generics.NewWorker(q, func(ctx context.Context, job *generics.Job[Deploy]) error {
		fmt.Printf("attempt %d, last error %q\n", job.Attempt, job.LastError)
		if job.Attempt == 1 {
			return generics.RetryAfter(10*time.Millisecond, errors.New("rate limited"))
		}
		return nil
	}, generics.UntilDrained())
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// attempt 1, last error ""
	// attempt 2, last error "rate limited"
}

func ExamplePermanentErrors() {
	errNoSuchApp := errors.New("no such app")
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	if _, err := q.Put(ctx, Deploy{"wbe", "v42"}); err != nil {
		log.Fatal(err)
	}
	w := generics.NewWorker(q, func(ctx context.Context, job *generics.Job[Deploy]) error {
		return fmt.Errorf("deploy %s: %w", job.Data.App, errNoSuchApp)
	}, generics.UntilEmpty(), generics.PermanentErrors(errNoSuchApp))
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Counts().Failed, "failed at once")
	// Output: 1 failed at once
}

func ExampleMiddleware() {
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	if _, err := q.Put(ctx, Deploy{"web", "v42"}, queue.Header("trace", "4bf92f")); err != nil {
		log.Fatal(err)
	}
	w := generics.NewWorker(q, func(ctx context.Context, job *generics.Job[Deploy]) error {
		fmt.Println("deploying", job.Data.App)
		return nil
	}, generics.UntilEmpty(), generics.Middleware(traced[Deploy]))
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// begin 4bf92f
	// deploying web
	// end 4bf92f
}

// traced is written once for jobs of any type.
func traced[T any](next generics.Handler[T]) generics.Handler[T] {
	return func(ctx context.Context, job *generics.Job[T]) error {
		fmt.Println("begin", job.Headers["trace"])
		defer fmt.Println("end", job.Headers["trace"])
		return next(ctx, job)
	}
}

func ExampleOnDone() {
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	if _, err := q.Put(ctx, Deploy{"web", "v42"}, queue.MaxRetries(0)); err != nil {
		log.Fatal(err)
	}
	w := generics.NewWorker(q, func(ctx context.Context, job *generics.Job[Deploy]) error {
		panic("hull breach")
	}, generics.UntilEmpty(), generics.OnDone(func(e generics.Event) {
		fmt.Println(e.Job.ID, e.Outcome, e.Err)
	}))
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: 1 panic panic: hull breach
}
