package generics

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// secret is in every payload of these tests, and must be in no error and no line of a log.
const secret = "hunter2-31415926535"

// transcript is a log kept as text.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (tr *transcript) Write(p []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.text.Write(p)
}

func (tr *transcript) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.text.String()
}

func (tr *transcript) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(tr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type appointment struct {
	At    time.Time
	Count int8
}

func TestNoErrorQuotesAPayload(t *testing.T) {
	log := &transcript{}
	q := open[appointment](t, queue.WithLogger(log.logger()), queue.WithMaxPayload(1000), queue.WithLease(time.Millisecond), queue.WithMaxPending(100))
	ctx := background(t)
	raw := q.Raw()
	var told []error
	tell := func(what string, err error) {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
		told = append(told, err)
	}

	_, err := raw.Put(ctx, []byte(strings.Repeat(secret, 100)))
	tell("too large", err)
	_, err = raw.PutMany(ctx, []queue.NewJob{{Payload: []byte(secret)}, {Payload: []byte(strings.Repeat(secret, 100))}})
	tell("too large in a batch", err)
	_, err = raw.Put(ctx, []byte(secret), queue.JobID(""))
	tell("bad option", err)
	_, err = raw.Put(ctx, []byte(secret), queue.Header("", secret))
	tell("bad header", err)
	id, err := raw.Put(ctx, []byte(secret), queue.JobID("k"))
	if err != nil {
		t.Fatal(err)
	}
	tell("not failed", raw.RetryFailed(ctx, id.ID))
	tell("not delayed", raw.RunNow(ctx, id.ID))
	job, err := raw.TryGet(ctx)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lease has ended", func() bool { return time.Now().After(job.LeaseUntil) })
	tell("expired", job.Ack(ctx))
	tell("expired", job.Nack(ctx, errors.New("told by the handler")))
	tell("leased or gone", raw.Ack(ctx, job.ID, "1-00000000000000000000000000000000"))
	for _, payload := range []string{secret, `{"At":"` + secret + `"}`, `{"Count":31415926535}`, `{"` + secret, `{"Count":1}` + secret, `{"At":"2020-01-01T00:00:00Z","Count":"` + secret + `"}`} {
		if _, err := raw.Put(ctx, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = q.TryGet(ctx)
	tell("nothing decodable", err)

	for failed, err := range raw.All(ctx, queue.Failed) {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, errors.New(failed.LastError))
	}
	page, err := q.ListFailed(ctx, queue.ListOptions{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Jobs) < 6 {
		t.Errorf("%d dead letters, want 6 at least", len(page.Jobs))
	}
	for _, j := range page.Jobs {
		told = append(told, j.DecodeErr)
	}
	quotes(t, log, told...)
}

func TestNoLineOfAWorkersLogQuotesAPayload(t *testing.T) {
	log := &transcript{}
	dir := t.TempDir()
	q := openDir[string](t, dir, queue.WithLogger(log.logger()), queue.WithMaxRetries(0), queue.WithLease(time.Second))
	for range 4 {
		put(t, q, secret)
	}
	ended := newEvents()
	stop := start(t, NewWorker(q, func(_ context.Context, job *Job[string]) error {
		switch job.ID {
		case 1:
			return errors.New("refused")
		case 2:
			panic("lost")
		case 3:
			return Permanent(errors.New("never"))
		}
		return nil
	}, ended.hook(), OnDone(func(Event) { panic("the hook's own") })))
	for range 4 {
		receive(t, ended)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if log.String() == "" {
		t.Error("the log is empty")
	}
	quotes(t, log)
}

// quotes fails the test if anything that was told has the secret, or a recognizable part of it.
func quotes(t *testing.T, log *transcript, told ...error) {
	t.Helper()
	said := []string{log.String()}
	for _, err := range told {
		if err != nil {
			said = append(said, err.Error())
		}
	}
	for _, text := range said {
		for _, part := range []string{secret, "hunter2", "31415926535"} {
			if strings.Contains(text, part) {
				t.Errorf("it quotes the payload: %s", text)
			}
		}
	}
}
