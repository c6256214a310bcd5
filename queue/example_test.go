package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var ctx = context.Background()

// exampleStore opens a Store in a temporary directory; done closes and removes it.
func exampleStore(opts ...queue.Option) (s *queue.Store, done func()) {
	dir, err := os.MkdirTemp("", "localqueue-example-")
	check(err)
	s, err = queue.Open(dir, opts...)
	check(err)
	return s, func() {
		check(s.Close())
		check(os.RemoveAll(dir))
	}
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// A job is put, received under a lease, and acked once its work is done.
func Example() {
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
	emails := store.Default()

	if _, err := emails.Put(ctx, []byte("to: ann@example.org")); err != nil {
		log.Panic(err)
	}
	job, err := emails.Get(ctx)
	if err != nil {
		log.Panic(err)
	}
	fmt.Printf("attempt %d of %d: %s\n", job.Attempt, job.MaxAttempts, job.Payload)
	if err := job.Ack(ctx); err != nil {
		log.Panic(err)
	}
	// Output: attempt 1 of 4: to: ann@example.org
}

func ExampleStore_Queue() {
	store, done := exampleStore()
	defer done()
	thumbnails, err := store.Queue("thumbnails", queue.WithLease(5*time.Minute), queue.WithMaxRetries(0))
	check(err)
	_, err = thumbnails.Put(ctx, []byte("cat.png"))
	check(err)
	job, err := thumbnails.Get(ctx)
	check(err)
	fmt.Println(job.Queue, job.MaxAttempts, thumbnails.Lease())
	// Output: thumbnails 1 5m0s
}

// A job_id makes a put safe to repeat: whoever holds it is the answer.
func ExampleJobID() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	for range 2 {
		res, err := q.Put(ctx, []byte("invoice 17"), queue.JobID("invoice-17"))
		check(err)
		fmt.Println(res.ID, res.Duplicate)
	}
	// Output:
	// 1 false
	// 1 true
}

// With UniqueWhilePending the key is free again once its job has finished.
func ExampleUniqueWhilePending() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	put := func() {
		res, err := q.Put(ctx, []byte("reindex"), queue.JobID("reindex"), queue.UniqueWhilePending())
		check(err)
		fmt.Println(res.Duplicate)
	}
	put()
	put()
	job, err := q.Get(ctx)
	check(err)
	check(job.Ack(ctx))
	put()
	// Output:
	// false
	// true
	// false
}

func ExampleDelay() {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	store, done := exampleStore(queue.WithClock(func() time.Time { return now }))
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, []byte("remind"), queue.Delay(time.Hour))
	check(err)
	_, err = q.TryGet(ctx)
	fmt.Println(errors.Is(err, queue.ErrEmpty))
	now = now.Add(time.Hour)
	job, err := q.TryGet(ctx)
	check(err)
	fmt.Println(string(job.Payload))
	// Output:
	// true
	// remind
}

func ExamplePriority() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.PutMany(ctx, []queue.NewJob{
		{Payload: []byte("newsletter"), Options: []queue.PutOption{queue.Priority(-10)}},
		{Payload: []byte("receipt")},
		{Payload: []byte("password reset"), Options: []queue.PutOption{queue.Priority(10)}},
	})
	check(err)
	jobs, err := q.GetMany(ctx, 10)
	check(err)
	for _, job := range jobs {
		fmt.Println(string(job.Payload))
	}
	// Output:
	// password reset
	// receipt
	// newsletter
}

func ExampleHeader() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, nil, queue.Header("trace-id", "4bf92f3577b34da6"))
	check(err)
	job, err := q.Get(ctx)
	check(err)
	fmt.Println(job.Headers["trace-id"])
	// Output: 4bf92f3577b34da6
}

// A batch of settles answers per job.
func ExampleQueue_AckMany() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.PutMany(ctx, []queue.NewJob{{Payload: []byte("a")}, {Payload: []byte("b")}})
	check(err)
	jobs, err := q.GetMany(ctx, 100)
	check(err)
	check(q.Cancel(ctx, jobs[1].ID))
	errs, err := q.AckMany(ctx, []queue.Ref{jobs[0].Ref(), jobs[1].Ref()})
	check(err)
	fmt.Println(errs[0], errors.Is(errs[1], queue.ErrCancelled))
	// Output: <nil> true
}

// A nacked job comes again, now or after a delay; after its last delivery it is in the dead letters.
func ExampleJob_Nack() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, []byte("fetch"), queue.MaxRetries(1))
	check(err)
	for range 2 {
		job, err := q.Get(ctx)
		check(err)
		fmt.Printf("attempt %d, last error %q\n", job.Attempt, job.LastError)
		check(job.Nack(ctx, errors.New("timeout")))
	}
	page, err := q.ListFailed(ctx, queue.ListOptions{})
	check(err)
	for _, dead := range page.Records {
		fmt.Println(dead.State, dead.Reason, dead.LastError)
	}
	// Output:
	// attempt 1, last error ""
	// attempt 2, last error "timeout"
	// failed retries_exhausted timeout
}

func ExampleJob_Fail() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, []byte("no such customer"))
	check(err)
	job, err := q.Get(ctx)
	check(err)
	check(job.Fail(ctx, errors.New("customer 12 is gone")))
	rec, story, err := q.Show(ctx, job.ID)
	check(err)
	fmt.Println(rec.State, rec.Reason, story[0].Outcome, story[0].Error)
	// Output: failed permanent failed customer 12 is gone
}

// A released job is as if it had not been delivered: the attempt isn't used.
func ExampleJob_Release() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, []byte("x"))
	check(err)
	for range 2 {
		job, err := q.Get(ctx)
		check(err)
		fmt.Println("attempt", job.Attempt, "delivery", job.Delivery)
		check(job.Release(ctx))
	}
	// Output:
	// attempt 1 delivery 1
	// attempt 1 delivery 2
}

// The ack and the follow-up are in one transaction: both happen, or neither.
func ExampleJob_AckWith() {
	store, done := exampleStore()
	defer done()
	orders := store.Default()
	emails, err := store.Queue("emails")
	check(err)
	_, err = orders.Put(ctx, []byte("order 1"))
	check(err)
	job, err := orders.Get(ctx)
	check(err)
	check(job.AckWith(ctx, func(tx *queue.Tx) error {
		_, err := emails.PutTx(ctx, tx, []byte("confirm order 1"))
		return err
	}))
	next, err := emails.Get(ctx)
	check(err)
	fmt.Println(string(next.Payload))
	// Output: confirm order 1
}

// A caller's own rows in the same file, and the job that tells of them, are stored together.
func ExampleStore_Tx() {
	store, done := exampleStore()
	defer done()
	q := store.Default()
	check(store.Tx(ctx, func(tx *queue.Tx) error {
		if _, err := tx.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT)"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (what) VALUES ('book')"); err != nil {
			return err
		}
		_, err := q.PutTx(ctx, tx, []byte("order 1"))
		return err
	}))
	job, err := q.Get(ctx)
	check(err)
	fmt.Println(string(job.Payload))
	// Output: order 1
}

// The effect of a job on the same file, in a transaction that the caller opened, and its ack commit together: exactly once.
func ExampleJob_AckTx() {
	store, done := exampleStore()
	defer done()
	_, err := store.Default().Put(ctx, []byte("3"))
	check(err)
	job, err := store.Default().Get(ctx)
	check(err)

	db, err := sql.Open("sqlite3", "file:"+filepath.Join(store.Dir(), "localqueue.db")+"?_txlock=immediate&_busy_timeout=10000")
	check(err)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, nil)
	check(err)
	_, err = tx.ExecContext(ctx, "CREATE TABLE sums AS SELECT CAST(? AS INTEGER) AS n", string(job.Payload))
	check(err)
	check(job.AckTx(ctx, tx))
	check(tx.Commit())

	fmt.Println(errors.Is(job.Ack(ctx), queue.ErrLeaseLost)) // it is settled
	// Output: true
}

// A lease that was lost tells why, and the job's new owner isn't disturbed.
func ExampleLeaseLostError() {
	now := time.Now()
	store, done := exampleStore(queue.WithClock(func() time.Time { return now }), queue.WithLease(time.Minute))
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, []byte("slow"))
	check(err)
	job, err := q.Get(ctx)
	check(err)
	now = now.Add(2 * time.Minute)
	err = job.Ack(ctx)
	var lost *queue.LeaseLostError
	if errors.As(err, &lost) {
		fmt.Println(lost.Cause)
	}
	// Output: expired
}

func ExampleQueue_Heartbeat() {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	store, done := exampleStore(queue.WithClock(func() time.Time { return now }), queue.WithLease(time.Minute))
	defer done()
	q := store.Default()
	_, err := q.Put(ctx, []byte("long"))
	check(err)
	job, err := q.Get(ctx)
	check(err)
	now = now.Add(50 * time.Second)
	beats, err := q.Heartbeat(ctx, []queue.Ref{job.Ref()}, time.Minute)
	check(err)
	fmt.Println(job.LeaseUntil.Format(time.TimeOnly), beats[0].LeaseUntil.Format(time.TimeOnly))
	// Output: 12:01:00 12:01:50
}
