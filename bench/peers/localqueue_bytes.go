package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/localqueue/localqueue/queue"
)

// localqueueBytes is ours again, doing what goqite does: bytes instead of a type, and jobs that are deleted at their ack.
func localqueueBytes() *goPeer {
	return &goPeer{
		info: about{
			Name: ours + "-bytes", Version: "this checkout", Driver: mattnDriver, Ack: "deleted",
			Differs: "the queue package without the typed one above it: bytes, not JSON; KeepAcked(0)",
		},
		open: openLocalqueueBytes,
		lack: map[work]string{workWorker: "the worker is in the typed package"},
	}
}

type bytesSession struct {
	store *queue.Store
	q     *queue.Queue
	note  string
}

func openLocalqueueBytes(ctx context.Context, dir string, s setting) (session, error) {
	opts, note := localqueueOptions(s)
	store, err := queue.Open(dir, opts...)
	if err != nil {
		return nil, err
	}
	q := store.Default()
	if err := q.KeepAcked(ctx, 0); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &bytesSession{store, q, note}, nil
}

// localqueueOptions are those of both of ours.
func localqueueOptions(s setting) (opts []queue.Option, note string) {
	note = "waits for other writers itself, up to 10 s"
	opts = []queue.Option{queue.WithLogger(slog.New(slog.DiscardHandler))}
	switch s {
	case settingNormal:
		opts = append(opts, queue.WithDurability(queue.Normal))
	case settingFull:
		opts = append(opts, queue.WithDurability(queue.Full))
	case settingRecommended:
		note = "FULL for puts, NORMAL for claims and acks; " + note
	}
	return opts, note
}

func (s *bytesSession) put(ctx context.Context, payload string) error {
	_, err := s.q.Put(ctx, []byte(payload))
	return err
}

func (s *bytesSession) putMany(ctx context.Context, payloads []string) error {
	jobs := make([]queue.NewJob, len(payloads))
	for i, p := range payloads {
		jobs[i].Payload = []byte(p)
	}
	_, err := s.q.PutMany(ctx, jobs)
	return err
}

func (s *bytesSession) getAck(ctx context.Context) (string, bool, error) {
	job, err := s.q.TryGet(ctx)
	if errors.Is(err, queue.ErrEmpty) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return string(job.Payload), true, job.Ack(ctx)
}

func (s *bytesSession) getAckMany(ctx context.Context, n int) ([]string, error) {
	jobs, err := s.q.TryGetMany(ctx, n)
	if errors.Is(err, queue.ErrEmpty) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	payloads, refs := make([]string, len(jobs)), make([]queue.Ref, len(jobs))
	for i, job := range jobs {
		payloads[i], refs[i] = string(job.Payload), job.Ref()
	}
	lost, err := s.q.AckMany(ctx, refs)
	return payloads, errors.Join(err, errors.Join(lost...))
}

func (s *bytesSession) inForce(ctx context.Context) (inForce, error) {
	return localqueuePragmas(ctx, s.store, s.note)
}

func (s *bytesSession) close() error { return s.store.Close() }

// localqueuePragmas asks the Store's writer, in a transaction of its own, which counts as a put.
func localqueuePragmas(ctx context.Context, store *queue.Store, note string) (f inForce, err error) {
	err = store.Tx(ctx, func(tx *queue.Tx) error {
		f, err = readPragmas(ctx, tx)
		return err
	})
	f.Note = note
	return f, err
}
