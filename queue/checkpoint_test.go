package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

// Without the checkpoints of our own, SQLite would let the WAL grow to 16 MB before it copies all of it at once.
func TestTheWALStartsAnewWhileItsWriterGoesOn(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t, queue.WithDurability(queue.Normal))
	q := s.Default()
	var most int64
	for i := range 4000 { // about 40 MB of changed pages
		ok(t, second(q.Put(ctx, payload128)))
		j, err := q.TryGet(ctx)
		ok(t, err)
		ok(t, j.Ack(ctx))
		if i%50 == 0 {
			st, err := os.Stat(filepath.Join(s.Dir(), "localqueue.db-wal"))
			ok(t, err)
			most = max(most, st.Size())
		}
	}
	if most > 12<<20 {
		t.Errorf("the WAL had %.1f MB; its writer starts it anew at about 6 MB", float64(most)/(1<<20))
	}
	if most < 4<<20 {
		t.Errorf("the WAL had %.1f MB at most: too little for this test to show anything", float64(most)/(1<<20))
	}
}

// overlap keeps one snapshot of the file open at any time, none of them for long: each begins before the one before it ends.
func overlap(t *testing.T, dir string) (stop func()) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "localqueue.db")+"?mode=rw&_busy_timeout=5000")
	ok(t, err)
	over, ended := make(chan struct{}), make(chan error, 1)
	snapshot := func() (*sql.Tx, error) {
		tx, err := db.Begin()
		if err == nil {
			err = tx.QueryRow("SELECT count(*) FROM queues").Scan(new(int))
		}
		return tx, err
	}
	go func() {
		last, err := snapshot()
		for on := true; on && err == nil; {
			var next *sql.Tx
			if next, err = snapshot(); err == nil {
				err = last.Rollback()
				last = next
			}
			select {
			case <-over:
				on = false
			case <-time.After(30 * time.Millisecond):
			}
		}
		ended <- errors.Join(err, last.Rollback(), db.Close())
	}()
	return func() { close(over); ok(t, <-ended) }
}

// A checkpoint that waits for nobody never finds a moment without a reader here, and the WAL would grow for ever.
func TestTheWALStartsAnewUnderReadersThatOverlap(t *testing.T) {
	ctx := context.Background()
	s := queuetest.Open(t, queue.WithDurability(queue.Normal))
	q := s.Default()
	stop := overlap(t, s.Dir())
	defer stop()
	db, err := openRaw(s.Dir())
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	var busy, frames, copied, most, restarts int
	for range 1000 { // some 200 MB, if it never starts anew
		jobs := slices.Repeat([]queue.NewJob{{Payload: payload128}}, 1000)
		ok(t, second(q.PutMany(ctx, jobs)))
		ok(t, db.QueryRow("PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &frames, &copied))
		if frames < most {
			restarts++
			most = 0
		}
		most = max(most, frames)
	}
	if restarts == 0 {
		t.Errorf("the WAL has %d frames and has never started anew", frames)
	}
}
