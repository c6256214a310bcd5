package queue_test

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/localqueue/localqueue/queue"
)

func ExampleQueue_RetryFailed() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, []byte("x"))
	check(err)
	job, err := q.Get(ctx)
	check(err)
	check(job.Fail(ctx, errors.New("the API key was wrong")))
	check(q.RetryFailed(ctx, job.ID))
	again, err := q.Get(ctx)
	check(err)
	fmt.Println("attempt", again.Attempt, "delivery", again.Delivery)
	// Output: attempt 1 delivery 2
}

func ExampleQueue_RetryMany() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	for _, text := range []string{"timeout", "bad address", "timeout"} {
		_, err := q.Put(ctx, nil)
		check(err)
		job, err := q.Get(ctx)
		check(err)
		check(job.Fail(ctx, errors.New(text)))
	}
	report, err := q.RetryMany(ctx, queue.RetryFilter{ErrorContains: "timeout"})
	check(err)
	fmt.Printf("%+v\n", report)
	// Output: {Matched:2 Retried:2 Conflicts:0}
}

func ExampleQueue_Cancel() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, nil)
	check(err)
	job, err := q.Get(ctx)
	check(err)
	check(q.Cancel(ctx, job.ID))
	err = job.Ack(ctx)
	fmt.Println(errors.Is(err, queue.ErrLeaseLost), errors.Is(err, queue.ErrCancelled))
	// Output: true true
}

func ExampleQueue_RunNow() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	res, err := q.Put(ctx, []byte("tomorrow's report"), queue.Delay(24*time.Hour))
	check(err)
	check(q.RunNow(ctx, res.ID))
	job, err := q.TryGet(ctx)
	check(err)
	fmt.Println(string(job.Payload))
	// Output: tomorrow's report
}

// A pause is stored in the file and holds in every process.
func ExampleQueue_Pause() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, nil)
	check(err)
	check(q.Pause(ctx))
	_, err = q.TryGet(ctx)
	fmt.Println(errors.Is(err, queue.ErrEmpty))
	check(q.Resume(ctx))
	_, err = q.TryGet(ctx)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// With KeepAcked(0) a job is deleted with its ack, and its key is free at once.
func ExampleQueue_KeepAcked() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	check(q.KeepAcked(ctx, 0))
	_, err := q.Put(ctx, nil, queue.JobID("k"))
	check(err)
	job, err := q.Get(ctx)
	check(err)
	check(job.Ack(ctx))
	st, err := q.Stats(ctx)
	check(err)
	res, err := q.Put(ctx, nil, queue.JobID("k"))
	check(err)
	fmt.Println(st.Acked, res.Duplicate)
	// Output: 0 false
}

func ExampleQueue_Purge() {
	now := time.Now()
	store, done := exampleStore(queue.WithClock(func() time.Time { return now }))
	defer done()
	q := store.Default()
	for range 3 {
		_, err := q.Put(ctx, nil)
		check(err)
		job, err := q.Get(ctx)
		check(err)
		check(job.Ack(ctx))
		now = now.Add(24 * time.Hour)
	}
	removed, err := q.Purge(ctx, queue.PurgeOptions{OlderThan: 36 * time.Hour})
	check(err)
	fmt.Println(removed)
	// Output: 2
}

func ExampleQueue_All() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	for _, p := range []string{"a", "b"} {
		_, err := q.Put(ctx, []byte(p))
		check(err)
	}
	for rec, err := range q.All(ctx, queue.Ready) {
		check(err)
		fmt.Println(rec.ID, rec.State, string(rec.Payload))
	}
	// Output:
	// 1 ready a
	// 2 ready b
}

func ExampleQueue_List() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.PutMany(ctx, make([]queue.NewJob, 5))
	check(err)
	for after := ""; ; {
		page, err := q.List(ctx, queue.Ready, queue.ListOptions{Limit: 2, After: after})
		check(err)
		fmt.Println(len(page.Records))
		if after = page.Next; after == "" {
			break
		}
	}
	// Output:
	// 2
	// 2
	// 1
}

func ExampleQueue_Peek() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, []byte("next"))
	check(err)
	rec, err := q.Peek(ctx)
	check(err)
	fmt.Println(string(rec.Payload), rec.Attempts)
	// Output: next 0
}

func ExampleQueue_Stats() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, nil)
	check(err)
	_, err = q.Put(ctx, nil, queue.Delay(time.Hour))
	check(err)
	_, err = q.Get(ctx)
	check(err)
	st, err := q.Stats(ctx)
	check(err)
	fmt.Println("ready", st.Ready, "of which delayed", st.Delayed, "processing", st.Processing)
	// Output: ready 1 of which delayed 1 processing 1
}

// Puts to a full queue wait for room; TryPut says so at once.
func ExampleWithMaxPending() {
	store, done := exampleStore()
	defer done()
	q, err := store.Queue("small", queue.WithMaxPending(1))
	check(err)
	_, err = q.Put(ctx, nil)
	check(err)
	_, err = q.TryPut(ctx, nil)
	fmt.Println(errors.Is(err, queue.ErrFull))
	job, err := q.Get(ctx)
	check(err)
	check(job.Ack(ctx))
	_, err = q.TryPut(ctx, nil)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

func ExampleStore_Check() {
	store, done := exampleStore()
	defer done()
	findings, err := store.Check(ctx, true)
	check(err)
	fmt.Println(len(findings), "findings")
	// Output: 0 findings
}

// What is lost with a process comes back when its lease has ended.
func ExampleQueue_ReclaimExpired() {
	now := time.Now()
	store, done := exampleStore(queue.WithClock(func() time.Time { return now }))
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, nil)
	check(err)
	_, err = q.Get(ctx) // and then the process dies
	check(err)
	now = now.Add(queue.DefaultLease)
	reclaimed, err := q.ReclaimExpired(ctx)
	check(err)
	fmt.Printf("%+v\n", reclaimed)
	// Output: {Returned:1 Failed:0}
}

// A receiver is woken by a put of any Store on the directory, in this process or another. This one looks for writes of
// other programs, which don't ring, once a minute.
func ExampleWithPoll() {
	here, done := exampleStore(queue.WithPoll(time.Minute))
	defer done()
	there, err := queue.Open(here.Dir())
	check(err)
	defer func() { check(there.Close()) }()
	got := make(chan string)
	go func() {
		job, err := here.Default().Get(ctx)
		check(err)
		got <- string(job.Payload)
	}()
	_, err = there.Default().Put(ctx, []byte("good morning"))
	check(err)
	fmt.Println(<-got)
	// Output: good morning
}

// Many callers at once share transactions: under Full, 64 of them pay for a few syncs of the disk.
func ExampleQueue_Put_concurrently() {
	store, done := exampleStore(queue.WithDurability(queue.Full))
	defer done()
	q := store.Default()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			_, err := q.Put(ctx, fmt.Append(nil, i))
			check(err)
		})
	}
	all.Wait()
	stats, err := q.Stats(ctx)
	check(err)
	fmt.Println(stats.Ready)
	// Output: 64
}

// The baseline for measurements: without the line, processes that write at the same time are served as SQLite's sleeping
// busy handler has it.
func ExampleWithoutLine() {
	store, done := exampleStore(queue.WithoutLine())
	defer done()
	res, err := store.Default().Put(ctx, nil)
	check(err)
	fmt.Println(res.ID)
	// Output: 1
}
