package queue_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const megabyte = 1 << 20

// walLimit is what the file of the WAL is cut to when it starts anew (journal_size_limit).
const walLimit = 16 * megabyte

func walSize(t *testing.T, dir string) int64 {
	t.Helper()
	st, err := os.Stat(filepath.Join(dir, "localqueue.db-wal"))
	ok(t, err)
	return st.Size()
}

// A reader of another program keeps one snapshot: the WAL can't start anew, and grows with every write. Once the reader
// has gone, the writer that is still running brings it down.
func TestCase18_AReaderThatPinsTheWALLeavesItBoundedAfterwards(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, queue.WithDurability(queue.Normal))
	q, ctx := s.Default(), t.Context()
	round := func() {
		t.Helper()
		ok(t, second(q.Put(ctx, payload128)))
		j, err := q.TryGet(ctx)
		ok(t, err)
		ok(t, j.Ack(ctx))
	}
	round()
	other := startProcess(t)
	other.does("pin", dir)
	pinned := time.Now()
	least := time.Duration(sized(0, int(time.Minute)))
	rounds := 0
	for ; walSize(t, dir) < 2*walLimit || time.Since(pinned) < least; rounds++ {
		if rounds > 1_000_000 {
			t.Fatalf("the WAL has %d bytes after %d rounds under a reader: nothing is pinned", walSize(t, dir), rounds)
		}
		round()
		if walSize(t, dir) >= 2*walLimit {
			time.Sleep(5 * time.Millisecond) // a minute of writing at full speed would fill the disk
		}
	}
	most := walSize(t, dir)
	other.does("release", dir)
	after := 0
	for ; walSize(t, dir) > walLimit; after++ {
		if after > 5000 {
			t.Fatalf("the WAL had %d MB under a reader, and has %d MB %d rounds after it", most/megabyte, walSize(t, dir)/megabyte, after)
		}
		round()
	}
	for range 2000 { // and it stays so
		round()
	}
	if now := walSize(t, dir); now > walLimit {
		t.Errorf("the WAL has %d MB again", now/megabyte)
	}
	t.Logf("%d rounds made %d MB under the reader; %d rounds after it, it was bounded", rounds, most/megabyte, after)
	st, err := q.Stats(ctx)
	ok(t, err)
	same(t, "acked", int64(1+rounds+after+2000), st.Acked)
}
