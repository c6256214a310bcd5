package queue_test

import (
	"fmt"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Inspect looks at a queue from outside, and changes nothing: the job whose lease has ended stays where it is.
func ExampleInspect() {
	now := time.Now()
	store, done := exampleStore(queue.WithClock(func() time.Time { return now }))
	defer done()
	_, err := store.Default().Put(ctx, nil)
	check(err)
	_, err = store.Default().Get(ctx)
	check(err)

	facts, err := queue.Inspect(ctx, store.Dir(), queue.WithClock(func() time.Time { return now.Add(time.Hour) }))
	check(err)
	fmt.Println(facts.Journal, facts.SyncedLevel, facts.Err)
	for _, q := range facts.Queues {
		fmt.Println(q.Queue, "has", q.Expired, "expired delivery, for", facts.At.Sub(q.FirstLeaseEnd).Round(time.Minute))
	}
	// Output:
	// wal full <nil>
	// default has 1 expired delivery, for 59m0s
}
