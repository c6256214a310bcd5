package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver that goqite's documentation uses
	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
)

const goqiteModule = "maragu.dev/goqite"

// goqitePeer reads the schema once: goqite leaves it to its users to bring the file along.
type goqitePeer struct {
	goPeer
	schema string
}

func newGoqite() *goqitePeer {
	p := &goqitePeer{}
	p.goPeer = goPeer{
		info: about{
			Name: "goqite", Version: moduleVersion(goqiteModule), Driver: mattnDriver, Ack: "deleted",
			Differs: "bytes, not typed; a message comes again after 5 s; it is deleted by its id alone, also by a receiver whose time is over; no dead letters: after 3 receives it stays unseen. Batches are its Tx methods in one transaction",
		},
		open: p.openQueue,
	}
	return p
}

func (p *goqitePeer) prepare(ctx context.Context) error {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", goqiteModule).Output()
	if err != nil {
		return fmt.Errorf("finding goqite's schema with go list: %w", err)
	}
	schema, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema_sqlite.sql"))
	p.schema = string(schema)
	return err
}

type goqiteSession struct {
	db   *sql.DB
	q    *goqite.Queue
	jobs *goqite.Queue // its messages are in the form that goqite's job runner reads
	poll time.Duration
}

func (p *goqitePeer) openQueue(_ context.Context, dir string, s setting) (session, error) {
	// As documented: one connection, WAL, a busy timeout, foreign keys. The driver then sets synchronous to NORMAL.
	dsn, poll := mattnDSN(dir, "_journal=WAL&_timeout=5000&_fk=true", s), 10*time.Millisecond
	if s != settingRecommended {
		poll = time.Millisecond // the runner sleeps this long whenever all its slots are taken
	}
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	if _, err := db.Exec(p.schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &goqiteSession{
		db: db, poll: poll,
		q:    goqite.New(goqite.NewOpts{DB: db, Name: "bytes"}),
		jobs: goqite.New(goqite.NewOpts{DB: db, Name: "jobs"}),
	}, nil
}

// mattnDSN is a DSN for a file in dir, with synchronous set where the setting asks for it.
func mattnDSN(dir, params string, s setting) string {
	switch s {
	case settingNormal:
		params += "&_sync=NORMAL"
	case settingFull:
		params += "&_sync=FULL"
	}
	return "file:" + (&url.URL{Path: filepath.Join(dir, "queue.db")}).EscapedPath() + "?" + params
}

func (s *goqiteSession) put(ctx context.Context, payload string) error {
	return s.q.Send(ctx, goqite.Message{Body: []byte(payload)})
}

// inTx is how goqite documents doing several things at once: its methods that end in Tx, in a transaction of the caller's.
func (s *goqiteSession) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (s *goqiteSession) putMany(ctx context.Context, payloads []string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for _, p := range payloads {
			if err := s.q.SendTx(ctx, tx, goqite.Message{Body: []byte(p)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *goqiteSession) putForWorker(ctx context.Context, payloads []string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for _, p := range payloads {
			if _, err := jobs.CreateTx(ctx, tx, s.jobs, "job", goqite.Message{Body: []byte(p)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *goqiteSession) getAck(ctx context.Context) (string, bool, error) {
	m, err := s.q.Receive(ctx)
	if err != nil || m == nil {
		return "", false, err
	}
	return string(m.Body), true, s.q.Delete(ctx, m.ID)
}

func (s *goqiteSession) getAckMany(ctx context.Context, n int) (payloads []string, err error) {
	var ids []goqite.ID
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		for range n {
			m, err := s.q.ReceiveTx(ctx, tx)
			if err != nil || m == nil {
				return err
			}
			payloads, ids = append(payloads, string(m.Body)), append(ids, m.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return payloads, s.inTx(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			if err := s.q.DeleteTx(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// work always returns nil: goqite's runner reports no error.
//
//nolint:unparam // an interface's method; this runner reports no error
func (s *goqiteSession) work(ctx context.Context, handlers int, handle func(string)) error {
	r := jobs.NewRunner(jobs.NewRunnerOpts{Limit: handlers, PollInterval: s.poll, Queue: s.jobs})
	r.Register("job", func(_ context.Context, m []byte) error {
		handle(string(m))
		return nil
	})
	r.Start(ctx)
	return nil
}

func (s *goqiteSession) inForce(ctx context.Context) (inForce, error) {
	f, err := readPool(ctx, s.db)
	f.Note = fmt.Sprintf("one connection; runner polls every %v", s.poll)
	return f, err
}

func (s *goqiteSession) close() error { return s.db.Close() }
