package main

import (
	"context"
	"errors"

	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

// ours is the name that every other contender is compared with.
const ours = "localqueue"

func localqueue() *goPeer {
	return &goPeer{
		info: about{
			Name: ours, Version: "this checkout", Driver: mattnDriver, Ack: "kept, until purged",
			Differs: "leases of 60 s with receipts; typed, through JSON; the worker with its default options",
		},
		open: openLocalqueue,
	}
}

type localqueueSession struct {
	q    *generics.Queue[string]
	note string
}

func openLocalqueue(_ context.Context, dir string, s setting) (session, error) {
	opts, note := localqueueOptions(s)
	q, err := generics.Open[string](dir, opts...)
	if err != nil {
		return nil, err
	}
	return &localqueueSession{q, note}, nil
}

func (s *localqueueSession) put(ctx context.Context, payload string) error {
	_, err := s.q.Put(ctx, payload)
	return err
}

func (s *localqueueSession) putMany(ctx context.Context, payloads []string) error {
	_, err := s.q.PutMany(ctx, payloads)
	return err
}

func (s *localqueueSession) getAck(ctx context.Context) (string, bool, error) {
	job, err := s.q.TryGet(ctx)
	if errors.Is(err, queue.ErrEmpty) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return job.Data, true, job.Ack(ctx)
}

func (s *localqueueSession) getAckMany(ctx context.Context, n int) ([]string, error) {
	jobs, err := s.q.TryGetMany(ctx, n)
	if errors.Is(err, queue.ErrEmpty) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	payloads, refs := make([]string, len(jobs)), make([]queue.Ref, len(jobs))
	for i, job := range jobs {
		payloads[i], refs[i] = job.Data, job.Ref()
	}
	lost, err := s.q.Raw().AckMany(ctx, refs)
	return payloads, errors.Join(err, errors.Join(lost...))
}

func (s *localqueueSession) work(ctx context.Context, handlers int, handle func(string)) error {
	return generics.NewWorker(s.q, func(_ context.Context, job *generics.Job[string]) error {
		handle(job.Data)
		return nil
	}, generics.Concurrency(handlers)).Run(ctx)
}

func (s *localqueueSession) inForce(ctx context.Context) (inForce, error) {
	return localqueuePragmas(ctx, s.q.Raw().Store(), s.note)
}

func (s *localqueueSession) close() error { return s.q.Close() }
