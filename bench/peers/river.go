package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver that River documents for SQLite
)

// riverPeer is River with the documented driver, or with the one that the other Go queues use.
func riverPeer(name, driver string) *goPeer {
	const byHand = "jobs are taken by its Client only, never by hand"
	return &goPeer{
		info: about{
			Name: name, Version: moduleVersion("github.com/riverqueue/river"), Driver: driver, Ack: "kept for 24 h",
			Differs: "support of SQLite is experimental by its documentation; no lease: the jobs of a lost process come again after an hour by default; settles in batches, in the background. Batches are InsertManyFast",
		},
		open: func(ctx context.Context, dir string, s setting) (session, error) {
			if driver != moderncDriver && s == settingRecommended {
				return nil, &absentError{"River's documentation uses " + moderncDriver}
			}
			return openRiver(ctx, dir, driver, s)
		},
		lack: map[work]string{workGetAck: byHand, workGetAckBatch: byHand, workGetAckBig: byHand},
	}
}

type riverArgs struct {
	Data string `json:"data"`
}

func (riverArgs) Kind() string { return "job" }

type riverSession struct {
	db     *sql.DB
	client *river.Client[*sql.Tx] // only inserts
	config river.Config
	note   string
}

func openRiver(ctx context.Context, dir, driver string, s setting) (_ session, err error) {
	db, err := sql.Open(riverDSN(dir, driver, s))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	db.SetMaxOpenConns(1) // as documented
	migrator, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	r := &riverSession{db: db, config: river.Config{Logger: slog.New(slog.DiscardHandler)}}
	r.note = "one connection; fetches at most every 100ms, polls every 1s"
	if s != settingRecommended {
		// The least that River accepts. The defaults bound a Client with 8 handlers to 80 jobs a second.
		r.config.FetchCooldown, r.config.FetchPollInterval = river.FetchCooldownMin, river.FetchPollIntervalMin
		r.note = "one connection; fetches and polls at most every 1ms"
	}
	config := r.config
	r.client, err = river.NewClient(riversqlite.New(db), &config)
	return r, err
}

// riverDSN is the driver's name and a DSN. River's documentation sets no pragma at all, so neither does "recommended".
func riverDSN(dir, driver string, s setting) (name, dsn string) {
	if driver == mattnDriver {
		return "sqlite3", mattnDSN(dir, "_journal=WAL&_timeout=5000", s)
	}
	params := url.Values{}
	switch s {
	case settingNormal:
		params["_pragma"] = []string{"journal_mode(WAL)", "busy_timeout(5000)", "synchronous(NORMAL)"}
	case settingFull:
		params["_pragma"] = []string{"journal_mode(WAL)", "busy_timeout(5000)", "synchronous(FULL)"}
	}
	return "sqlite", "file:" + (&url.URL{Path: filepath.Join(dir, "queue.db")}).EscapedPath() + "?" + params.Encode()
}

func (s *riverSession) put(ctx context.Context, payload string) error {
	_, err := s.client.Insert(ctx, riverArgs{payload}, nil)
	return err
}

// putMany takes the quicker of River's two batches: the one that returns a count instead of the inserted jobs.
func (s *riverSession) putMany(ctx context.Context, payloads []string) error {
	params := make([]river.InsertManyParams, len(payloads))
	for i, p := range payloads {
		params[i].Args = riverArgs{p}
	}
	n, err := s.client.InsertManyFast(ctx, params)
	if err == nil && n != len(payloads) {
		err = fmt.Errorf("inserted %d of %d", n, len(payloads))
	}
	return err
}

func (s *riverSession) work(ctx context.Context, handlers int, handle func(string)) error {
	config := s.config
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: handlers}}
	config.Workers = river.NewWorkers()
	if err := river.AddWorkerSafely(config.Workers, river.WorkFunc(func(_ context.Context, job *river.Job[riverArgs]) error {
		handle(job.Args.Data)
		return nil
	})); err != nil {
		return err
	}
	client, err := river.NewClient(riversqlite.New(s.db), &config)
	if err != nil {
		return err
	}
	// Start's context would stop it hard: it isn't the caller's, whose end is a graceful stop.
	free := context.WithoutCancel(ctx)
	if err := client.Start(free); err != nil {
		return err
	}
	<-ctx.Done()
	stopCtx, cancel := context.WithTimeout(free, 30*time.Second)
	defer cancel()
	return client.Stop(stopCtx)
}

func (s *riverSession) inForce(ctx context.Context) (inForce, error) {
	f, err := readPool(ctx, s.db)
	f.Note = s.note
	return f, err
}

func (s *riverSession) close() error { return s.db.Close() }
