package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

func TestATransactionThatWasKeptIsRefused(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t)
	var kept *queue.Tx
	if err := s.Tx(ctx, func(tx *queue.Tx) error { kept = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	_, put := s.Default().PutTx(ctx, kept, []byte("late"))
	_, exec := kept.ExecContext(ctx, "DELETE FROM messages")
	var one int
	row := kept.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	for name, err := range map[string]error{"PutTx": put, "ExecContext": exec} {
		if !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s on a Tx whose function has returned: %v, want ErrInvalid", name, err)
		}
	}
	if row == nil {
		t.Error("QueryRowContext on a Tx whose function has returned gave a row")
	}
	if st, err := s.Default().Stats(ctx); err != nil || st.Ready != 0 {
		t.Errorf("stats %+v, %v: want nothing put", st, err)
	}
}

func TestMigrateStatusTellsWhenAStepWasApplied(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "q")
	if _, err := queue.MigrateStatus(ctx, dir); !errors.Is(err, queue.ErrNoQueue) {
		t.Fatalf("status of nothing: %v, want ErrNoQueue", err)
	}
	before := time.Now().Add(-time.Minute)
	done, err := queue.Migrate(ctx, dir)
	if err != nil || len(done) < 2 {
		t.Fatalf("applied %v, %v: want every step", done, err)
	}
	status, err := queue.MigrateStatus(ctx, dir)
	if err != nil || len(status) != len(done) {
		t.Fatalf("status %v, %v: want the %d steps that were applied", status, err, len(done))
	}
	for _, m := range status {
		if !m.Applied || m.AppliedAt.Before(before) {
			t.Errorf("%+v: want it applied just now", m)
		}
	}
}

func TestCheckFindsAReadyJobWithoutDeliveriesLeft(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t)
	if _, err := s.Default().Put(ctx, []byte("x")); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.Dir(), "localqueue.db")+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE messages SET attempts = max_attempts, delivery = max_attempts"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := s.Check(ctx, true)
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Text, "ready after 4 attempts") {
		t.Errorf("findings %+v, %v: want the ready job with 4 attempts", found, err)
	}
}

func TestOptionsAreCheckedBeforeThereIsAStore(t *testing.T) {
	if err := queue.CheckOptions(queue.JobID("k"), queue.UniqueWhilePending(), queue.Delay(time.Second)); err != nil {
		t.Errorf("good options: %v", err)
	}
	for name, opt := range map[string]queue.PutOption{
		"a control character in the key": queue.JobID("a\nb"),
		"a pending key without a key":    queue.UniqueWhilePending(),
		"headers over 16 KiB":            queue.Header("h", strings.Repeat("x", 17<<10)),
		"200 years ahead":                queue.At(time.Now().AddDate(200, 0, 0)),
	} {
		if err := queue.CheckOptions(opt); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}
