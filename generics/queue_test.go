package generics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

func TestValuesComeBackAsTheyWerePut(t *testing.T) {
	ctx, q := background(t), open[deploy](t)
	id := put(t, q, deploy{"web", 1970670598291982290}, queue.Header("trace", "x"), queue.Priority(3))
	job, err := q.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if job.ID != id || job.Data != (deploy{"web", 1970670598291982290}) || job.Attempt != 1 || job.Headers["trace"] != "x" || job.Priority != 3 {
		t.Errorf("got %+v %+v", job.Data, job.Job)
	}
	if err := job.Ack(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := q.TryGet(ctx); !errors.Is(err, queue.ErrEmpty) {
		t.Errorf("after the ack: %v", err)
	}
}

func TestManyValuesKeepTheirOrder(t *testing.T) {
	ctx, q := background(t), open[int](t)
	results, err := q.PutMany(ctx, []int{1, 2, 3, 4, 5})
	if err != nil || len(results) != 5 {
		t.Fatal(results, err)
	}
	if _, err := q.PutJobs(ctx, []NewJob[int]{{Data: 6}, {Data: 0, Options: []queue.PutOption{queue.Priority(1)}}}); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, n := range []int{4, 100} {
		jobs, err := q.GetMany(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			got = append(got, j.Data)
		}
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 6}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := q.TryGetMany(ctx, 3); !errors.Is(err, queue.ErrEmpty) {
		t.Error(err)
	}
}

// fussy refuses the value "bad" and panics at "panic", in both directions.
type fussy struct{}

func (fussy) check(s string) error {
	switch s {
	case "bad":
		return errors.New("fussy refuses it")
	case "panic":
		panic("payload: panic")
	}
	return nil
}
func (f fussy) Encode(s string) ([]byte, error) { return []byte(s), f.check(s) }
func (f fussy) Decode(b []byte) (string, error) { return string(b), f.check(string(b)) }

func TestAValueThatCannotBeEncodedStoresNothing(t *testing.T) {
	ctx, q := background(t), open[string](t).With(fussy{})
	for _, bad := range []string{"bad", "panic"} {
		_, one := q.Put(ctx, bad)
		_, try := q.TryPut(ctx, bad)
		_, many := q.PutMany(ctx, []string{"good", bad})
		tx := q.Raw().Store().Tx(ctx, func(tx *queue.Tx) error {
			_, err := q.PutTx(ctx, tx, bad)
			return err
		})
		txMany := q.Raw().Store().Tx(ctx, func(tx *queue.Tx) error {
			_, err := q.PutJobsTx(ctx, tx, []NewJob[string]{{Data: "good"}, {Data: bad}})
			return err
		})
		for _, err := range []error{one, try, many, tx, txMany} {
			if !errors.Is(err, queue.ErrInvalid) {
				t.Errorf("%s: %v", bad, err)
			}
		}
	}
	if s := stats(t, q); s.Ready != 0 {
		t.Errorf("%d jobs were stored", s.Ready)
	}
}

func TestUndecodableJobsGoToTheDeadLettersAndGetGoesOn(t *testing.T) {
	type get = func(context.Context, *Queue[string]) (string, error)
	one := func(j *Job[string], err error) (string, error) {
		if err != nil {
			return "", err
		}
		return j.Data, nil
	}
	many := func(js []*Job[string], err error) (string, error) {
		if err != nil {
			return "", err
		}
		var all []string
		for _, j := range js {
			all = append(all, j.Data)
		}
		return strings.Join(all, " "), nil
	}
	for name, get := range map[string]get{
		"Get":        func(ctx context.Context, q *Queue[string]) (string, error) { return one(q.Get(ctx)) },
		"TryGet":     func(ctx context.Context, q *Queue[string]) (string, error) { return one(q.TryGet(ctx)) },
		"GetMany":    func(ctx context.Context, q *Queue[string]) (string, error) { return many(q.GetMany(ctx, 3)) },
		"TryGetMany": func(ctx context.Context, q *Queue[string]) (string, error) { return many(q.TryGetMany(ctx, 3)) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, q := background(t), open[string](t)
			bytes := q.With(fussy{})
			var bad []int64
			for _, payload := range []string{"bad", "panic", "bad", "bad", "good", "panic"} {
				r, err := q.Raw().Put(ctx, []byte(payload))
				if err != nil {
					t.Fatal(err)
				}
				if payload != "good" {
					bad = append(bad, r.ID)
				}
			}
			if got, err := get(ctx, bytes); err != nil || got != "good" {
				t.Fatalf("got %q, %v", got, err)
			}
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if got, err := get(short, bytes); err == nil {
				t.Fatalf("got %q", got)
			}
			page, err := bytes.ListFailed(ctx, queue.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var ids []int64
			for _, f := range page.Jobs {
				ids = append(ids, f.ID)
				if f.Reason != queue.InvalidPayload || f.LastError == "" || strings.Contains(f.LastError, "payload") {
					t.Errorf("job %d: reason %s, error %q", f.ID, f.Reason, f.LastError)
				}
				if string(f.Payload) != "bad" && string(f.Payload) != "panic" || f.DecodeErr == nil {
					t.Errorf("job %d: payload %q, decode error %v", f.ID, f.Payload, f.DecodeErr)
				}
			}
			if diff := cmp.Diff(bad, ids); diff != "" {
				t.Error(diff)
			}
			if s := stats(t, q); s.Processing != 1 {
				t.Errorf("%d leased", s.Processing)
			}
		})
	}
}

func TestAnUndecodableJobWhoseLeaseIsLostIsPassedBy(t *testing.T) {
	ctx, q := background(t), open[string](t)
	slow := slowCodec{decoding: make(chan struct{}), cancelled: make(chan struct{})}
	id, err := q.Raw().Put(ctx, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, q, "good")
	got := make(chan *Job[string], 1)
	go func() {
		job, err := q.With(slow).Get(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- job
	}()
	receive(t, slow.decoding)
	if err := q.Raw().Cancel(ctx, id.ID); err != nil {
		t.Fatal(err)
	}
	close(slow.cancelled)
	if job := receive(t, got); job.Data != "good" {
		t.Errorf("got %q", job.Data)
	}
	if r := record(t, q, id.ID); r.Reason != queue.Cancelled {
		t.Errorf("reason %s", r.Reason)
	}
}

// slowCodec is JSON that fails at "x" when told to.
type slowCodec struct{ decoding, cancelled chan struct{} }

func (slowCodec) Encode(s string) ([]byte, error) { return JSON[string]().Encode(s) }
func (c slowCodec) Decode(b []byte) (string, error) {
	if string(b) == "x" {
		close(c.decoding)
		<-c.cancelled
	}
	return JSON[string]().Decode(b)
}

func TestAnUndecodableJobIsFailedAlsoWhenItsCallerHasLeft(t *testing.T) {
	q := open[string](t)
	slow := slowCodec{decoding: make(chan struct{}), cancelled: make(chan struct{})}
	id, err := q.Raw().Put(background(t), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan error, 1)
	go func() {
		_, err := q.With(slow).Get(ctx)
		got <- err
	}()
	receive(t, slow.decoding)
	cancel()
	close(slow.cancelled)
	if err := receive(t, got); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if r := record(t, q, id.ID); r.Reason != queue.InvalidPayload {
		t.Errorf("%+v", r)
	}
}

func TestADeadLetterThatDecodesShowsItsValue(t *testing.T) {
	ctx, q := background(t), open[deploy](t)
	put(t, q, deploy{"web", 1})
	job, err := q.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Fail(ctx, errors.New("no such app")); err != nil {
		t.Fatal(err)
	}
	page, err := q.ListFailed(ctx, queue.ListOptions{})
	if err != nil || len(page.Jobs) != 1 {
		t.Fatal(page, err)
	}
	f := page.Jobs[0]
	if f.Data != (deploy{"web", 1}) || f.DecodeErr != nil || f.Reason != queue.Permanent || f.LastError != "no such app" {
		t.Errorf("got %+v", f)
	}
}

func TestQueuesOfSeveralTypesShareAStore(t *testing.T) {
	ctx, store := background(t), queuetest.Open(t)
	deploys, err := On[deploy](store, "deploys", queue.WithLease(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	mails, err := On[string](store, "mails")
	if err != nil {
		t.Fatal(err)
	}
	put(t, deploys, deploy{"web", 1})
	job, err := deploys.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err = job.AckWith(ctx, func(tx *queue.Tx) error {
		if _, err := mails.PutTx(ctx, tx, "never sent"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if s := stats(t, mails); s.Ready != 0 {
		t.Fatal("the put outlived its transaction")
	}
	err = job.AckWith(ctx, func(tx *queue.Tx) error {
		_, err := mails.PutTx(ctx, tx, "web is out")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := stats(t, deploys); s.Acked != 1 {
		t.Errorf("%+v", s)
	}
	if err := deploys.Close(); err != nil {
		t.Fatal(err)
	}
	if mail, err := mails.TryGet(ctx); err != nil || mail.Data != "web is out" {
		t.Errorf("after the other queue's Close: %v, %v", mail, err)
	}
}

func TestClosingAnOpenedQueueClosesItsStore(t *testing.T) {
	q := open[int](t)
	result := make(chan error, 1)
	go func() {
		_, err := q.Get(context.Background())
		result <- err
	}()
	for range 2 {
		if err := q.With(nil).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := receive(t, result); !errors.Is(err, queue.ErrClosed) {
		t.Error(err)
	}
	if _, err := q.Put(context.Background(), 1); !errors.Is(err, queue.ErrClosed) {
		t.Error(err)
	}
}

func TestOpenAndOnReportBadOptions(t *testing.T) {
	if _, err := Open[int](t.TempDir(), queue.WithLease(0)); !errors.Is(err, queue.ErrInvalid) {
		t.Error(err)
	}
	store := queuetest.Open(t)
	for _, opts := range [][]queue.Option{{queue.WithMaxRetries(-1)}, {queue.WithClock(time.Now)}} {
		if _, err := On[int](store, "q", opts...); !errors.Is(err, queue.ErrInvalid) {
			t.Error(err)
		}
	}
	if _, err := On[int](store, ""); !errors.Is(err, queue.ErrInvalid) {
		t.Error(err)
	}
}

func TestAPutWhoseQueueIsFullIsRefusedOrWaits(t *testing.T) {
	ctx, q := background(t), open[int](t, queue.WithMaxPending(1))
	put(t, q, 1)
	if _, err := q.TryPut(ctx, 2); !errors.Is(err, queue.ErrFull) {
		t.Error(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := q.Put(ctx, 2)
		done <- err
	}()
	job, err := q.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Ack(ctx); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, done); err != nil {
		t.Error(err)
	}
}

func TestAJobIsSettledByItsMethods(t *testing.T) {
	ctx, q := background(t), open[int](t, queue.WithLease(time.Minute))
	id := put(t, q, 1, queue.MaxRetries(1))
	get := func() *Job[int] {
		t.Helper()
		j, err := q.TryGet(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	if err := get().Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := get().Nack(ctx, errors.New("first")); err != nil {
		t.Fatal(err)
	}
	job := get()
	if job.Attempt != 2 || job.LastError != "first" || job.Delivery != 3 {
		t.Errorf("attempt %d, error %q, delivery %d", job.Attempt, job.LastError, job.Delivery)
	}
	until, err := job.Extend(ctx, time.Hour)
	if err != nil || time.Until(until) < 59*time.Minute {
		t.Errorf("until %v, %v", until, err)
	}
	rolledBack := errors.New("no")
	err = q.Raw().Store().Tx(ctx, func(tx *queue.Tx) error { return errors.Join(job.AckTx(ctx, tx), rolledBack) })
	if !errors.Is(err, rolledBack) {
		t.Fatal(err)
	}
	if err := job.Nack(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if r := record(t, q, id); r.State != queue.Failed || r.LastError != "first" {
		t.Errorf("%+v", r)
	}
	if err := job.Ack(ctx); !errors.Is(err, queue.ErrLeaseLost) {
		t.Error(err)
	}
}
