package queue_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

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
