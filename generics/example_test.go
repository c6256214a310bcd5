package generics_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

type Deploy struct {
	App     string
	Version string
}

type Email struct {
	To, Text string
}

// tempDir makes a directory for an example.
func tempDir() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "localqueue-example-")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// openDeploys opens a queue for an example.
func openDeploys(opts ...queue.Option) (q *generics.Queue[Deploy], done func()) {
	dir, remove := tempDir()
	q, err := generics.Open[Deploy](dir, opts...)
	if err != nil {
		log.Fatal(err)
	}
	return q, func() { _ = q.Close(); remove() }
}

func Example() {
	dir, remove := tempDir()
	defer remove()

	q, err := generics.Open[Deploy](dir)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	ctx := context.Background()
	if _, err := q.Put(ctx, Deploy{App: "web", Version: "v42"}); err != nil {
		log.Fatal(err)
	}
	w := generics.NewWorker(q, func(ctx context.Context, job *generics.Job[Deploy]) error {
		fmt.Println("deploying", job.Data.App, job.Data.Version)
		return nil
	}, generics.UntilEmpty())
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: deploying web v42
}

func ExampleQueue_Put() {
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	first, err := q.Put(ctx, Deploy{"web", "v42"}, queue.JobID("web-v42"), queue.Priority(5), queue.Delay(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	again, err := q.Put(ctx, Deploy{"web", "v42"}, queue.JobID("web-v42"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Duplicate, again.Duplicate, again.ID == first.ID)
	// Output: false true true
}

func ExampleQueue_PutMany() {
	q, done := openDeploys()
	defer done()

	results, err := q.PutMany(context.Background(), []Deploy{{"web", "v42"}, {"api", "v7"}}, queue.MaxRetries(1))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(results), "stored in one transaction")
	// Output: 2 stored in one transaction
}

func ExampleQueue_PutJobs() {
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	_, err := q.PutJobs(ctx, []generics.NewJob[Deploy]{
		{Data: Deploy{"web", "v42"}},
		{Data: Deploy{"api", "v7"}, Options: []queue.PutOption{queue.Priority(1)}},
	})
	if err != nil {
		log.Fatal(err)
	}
	job, err := q.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.Data.App, "comes first")
	// Output: api comes first
}

func ExampleQueue_Get() {
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	if _, err := q.Put(ctx, Deploy{"web", "v42"}); err != nil {
		log.Fatal(err)
	}
	job, err := q.Get(ctx) // waits for one
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.Data.App, "attempt", job.Attempt, "of", job.MaxAttempts)
	if err := job.Ack(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: web attempt 1 of 4
}

func ExampleQueue_TryGet() {
	q, done := openDeploys()
	defer done()

	_, err := q.TryGet(context.Background())
	fmt.Println(errors.Is(err, queue.ErrEmpty))
	// Output: true
}

func ExampleQueue_ListFailed() {
	q, done := openDeploys()
	defer done()

	ctx := context.Background()
	// Another program has put something that is no Deploy.
	if _, err := q.Raw().Put(ctx, []byte(`{"App": NaN}`)); err != nil {
		log.Fatal(err)
	}
	_, err := q.TryGet(ctx)
	fmt.Println(errors.Is(err, queue.ErrEmpty))

	page, err := q.ListFailed(ctx, queue.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range page.Jobs {
		fmt.Printf("job %d, %s: %s, %v\n", job.ID, job.Reason, job.Payload, job.DecodeErr != nil)
	}
	// Output:
	// true
	// job 1, invalid_payload: {"App": NaN}, true
}

func ExampleQueue_With() {
	dir, remove := tempDir()
	defer remove()
	plain, err := generics.Open[[]byte](dir)
	if err != nil {
		log.Fatal(err)
	}
	defer plain.Close()

	q := plain.With(generics.Bytes())
	ctx := context.Background()
	if _, err := q.Put(ctx, []byte("as it is")); err != nil {
		log.Fatal(err)
	}
	job, err := q.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", job.Data)
	// Output: as it is
}

func ExampleOn() {
	dir, remove := tempDir()
	defer remove()
	store, err := queue.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	deploys, err := generics.On[Deploy](store, "deploys", queue.WithLease(5*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	emails, err := generics.On[Email](store, "emails")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(deploys.Raw().Name(), deploys.Raw().Lease(), emails.Raw().Name(), emails.Raw().Lease())
	// Output: deploys 5m0s emails 1m0s
}

// A job and what follows from it: the ack and the put are one transaction.
func ExampleJob_AckWith() {
	dir, remove := tempDir()
	defer remove()
	store, err := queue.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	deploys, err := generics.On[Deploy](store, "deploys")
	if err != nil {
		log.Fatal(err)
	}
	emails, err := generics.On[Email](store, "emails")
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	if _, err := deploys.Put(ctx, Deploy{"web", "v42"}); err != nil {
		log.Fatal(err)
	}
	job, err := deploys.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	err = job.AckWith(ctx, func(tx *queue.Tx) error {
		_, err := emails.PutTx(ctx, tx, Email{To: "team@example.org", Text: job.Data.App + " is out"})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	mail, err := emails.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mail.Data.Text)
	// Output: web is out
}

func ExampleStrictJSON() {
	payload := []byte(`{"App": "web", "Version": "v42", "Region": "eu"}`)
	deploy, err := generics.JSON[Deploy]().Decode(payload)
	fmt.Println(deploy, err)
	_, err = generics.StrictJSON[Deploy]().Decode(payload)
	fmt.Println(err)
	// Output:
	// {web v42} <nil>
	// unknown field before byte 48
}
