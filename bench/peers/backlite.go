package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/mikestefanello/backlite"
)

func newBacklite() *goPeer {
	const byHand = "tasks are taken by its dispatcher only, never by hand"
	return &goPeer{
		info: about{
			Name: "backlite", Version: moduleVersion("github.com/mikestefanello/backlite"), Driver: mattnDriver, Ack: "deleted",
			Differs: "a task of a lost process comes again after 10 minutes, as documented; it is claimed by a SELECT and an UPDATE that doesn't check it again, so it is for one process; when all handlers are busy, its dispatcher looks again after 100 ms",
		},
		open: openBacklite,
		lack: map[work]string{workGetAck: byHand, workGetAckBatch: byHand, workGetAckBig: byHand},
	}
}

type backliteTask struct{ Data string }

func (backliteTask) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "job", MaxAttempts: 4, Backoff: time.Second}
}

type backliteSession struct {
	db     *sql.DB
	client *backlite.Client // only adds
}

func openBacklite(_ context.Context, dir string, s setting) (_ session, err error) {
	// As documented: WAL, a busy timeout, and as many connections as database/sql likes to open.
	db, err := sql.Open("sqlite3", mattnDSN(dir, "_journal=WAL&_timeout=5000", s))
	if err != nil {
		return nil, err
	}
	client, err := newBackliteClient(db, 1)
	if err == nil {
		err = client.Install()
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &backliteSession{db, client}, nil
}

// newBackliteClient has the documented intervals.
func newBackliteClient(db *sql.DB, workers int) (*backlite.Client, error) {
	return backlite.NewClient(backlite.ClientConfig{
		DB: db, NumWorkers: workers, ReleaseAfter: 10 * time.Minute, CleanupInterval: time.Hour,
	})
}

func (s *backliteSession) put(ctx context.Context, payload string) error {
	_, err := s.client.Add(backliteTask{payload}).Ctx(ctx).Save()
	return err
}

func (s *backliteSession) putMany(ctx context.Context, payloads []string) error {
	tasks := make([]backlite.Task, len(payloads))
	for i, p := range payloads {
		tasks[i] = backliteTask{p}
	}
	_, err := s.client.Add(tasks...).Ctx(ctx).Save()
	return err
}

func (s *backliteSession) work(ctx context.Context, handlers int, handle func(string)) error {
	client, err := newBackliteClient(s.db, handlers)
	if err != nil {
		return err
	}
	client.Register(backlite.NewQueue(func(_ context.Context, t backliteTask) error {
		handle(t.Data)
		return nil
	}))
	// Start's context would stop it hard: it isn't the caller's, whose end is a graceful stop.
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	client.Start(free)
	<-ctx.Done()
	stopCtx, stop := context.WithTimeout(free, 30*time.Second)
	defer stop()
	if !client.Stop(stopCtx) {
		return errors.New("the dispatcher didn't stop within 30 s")
	}
	return nil
}

func (s *backliteSession) inForce(ctx context.Context) (inForce, error) {
	f, err := readPool(ctx, s.db)
	f.Note = "any number of connections"
	return f, err
}

func (s *backliteSession) close() error { return s.db.Close() }
