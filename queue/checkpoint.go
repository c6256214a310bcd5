package queue

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// Copying the WAL into the file is work that somebody must do. Left to SQLite, the commit that fills the WAL does all of
// it, with two syncs, while everybody waits. Here a goroutine beside the writer does most of it, on a reading connection.
// The WAL starts anew only if everything in it is copied between two writes: so once it is large, and nearly all of it is
// copied, the leader copies the rest. And it starts anew only when nobody reads what is in it: where readers overlap all the time,
// the leader must hold up writers until those that are there now have done; later ones read the file alone.

const (
	lookPages       = 250                 // about so many new pages of this process are worth a look at the WAL
	checkpointPages = 1000                // so many that aren't copied are worth a checkpoint: 2 MB
	fullWAL         = 3 * checkpointPages // now it should start anew
	overfullWAL     = 8 * checkpointPages // now writers wait for readers; SQLite itself copies what it can at each commit, too
)

// Writers are held up for readers in windows of the clock that all processes share, so that together they take a tenth of the
// time at most: 50 ms in every half second where the WAL has 16 MB, longer the more it has.
const (
	restartWindow  = 50 * time.Millisecond
	windowsInTurn  = 10
	longestWindows = 10 // times the shortest
)

// windowLeft is how much of such a window is left now.
func windowLeft(now time.Time, size int) time.Duration {
	window := restartWindow * time.Duration(min(size/overfullWAL, longestWindows))
	return window - time.Duration(now.UnixNano())%(windowsInTurn*window)
}

// checkpointer is the leader's, but for the channels.
type checkpointer struct {
	pages  int  // since the last look, by estimate
	under  bool // the goroutine is at it
	kick   chan struct{}
	result chan struct{} // a checkpoint has ended
	told   atomic.Int64  // when a failure was logged, in Unix nanoseconds
}

// failuresEvery is how often it is logged that the WAL can't be copied.
const failuresEvery = time.Minute

// wrote counts what a transaction has added to the WAL: a row alone dirties some pages, many share them. The caller leads,
// outside a transaction.
func (s *Store) wrote(rows int) {
	c := &s.checkpoints
	if c.pages += 4 + rows/4; plantedNoCheckpoint() {
		return
	}
	if c.pages < lookPages {
		return
	}
	c.pages = 0
	if c.under {
		select {
		case <-c.result:
			c.under = false
		default:
		}
	}
	size, copied := walState(s.w.conn)
	if size > 0 && copied > 0 {
		passing(inCheckpoint)
	}
	if size-copied < checkpointPages && size < fullWAL {
		return
	}
	if size < fullWAL {
		if !c.under {
			s.startCheckpoint()
		}
		return
	}
	if c.under { // it may be slow where the disk is; without a wait the WAL would grow
		<-c.result
		c.under = false
	}
	if size > overfullWAL && !plantedPatientReaders() {
		if left := windowLeft(time.Now(), size); left > time.Millisecond {
			s.restartWAL(left)
			return
		}
	}
	if size > copied {
		s.copyWAL(s.w.conn, "PASSIVE")
	}
}

// restartWAL copies the WAL and waits for those who read what is in it, so that the next commit starts it anew. New readers
// aren't waited for.
func (s *Store) restartWAL(wait time.Duration) {
	if err := s.w.waitForLocks(wait); err == nil {
		s.copyWAL(s.w.conn, "RESTART")
	}
	if err := s.w.waitForLocks(s.w.wait); err != nil {
		s.cfg.logger.Error("localqueue: the writing connection keeps a busy timeout", "dir", s.dir, "err", err)
	}
}

func (s *Store) startCheckpoint() {
	c := &s.checkpoints
	if c.kick == nil {
		c.kick, c.result = make(chan struct{}), make(chan struct{}, 1)
		go s.checkpoint(c.kick, c.result)
	}
	c.under = true
	c.kick <- struct{}{}
}

func (s *Store) checkpoint(kick <-chan struct{}, result chan<- struct{}) {
	defer close(result)
	for range kick {
		s.copyWAL(s.reader, "PASSIVE")
		result <- struct{}{}
	}
}

// stop ends the goroutine. Nobody leads any more.
func (c *checkpointer) stop() {
	if c.kick == nil {
		return
	}
	close(c.kick)
	for range c.result {
	}
}

// copyWAL copies what it can of the WAL into the database. Writers go on where that fails, so nobody but the log would hear of
// it before the WAL has filled the disk.
func (s *Store) copyWAL(db queryRower, mode string) {
	var busy, size, copied int
	err := db.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &size, &copied)
	if err == nil || isBusy(err) {
		return
	}
	now, last := time.Now().UnixNano(), s.checkpoints.told.Load()
	if now-last >= int64(failuresEvery) && s.checkpoints.told.CompareAndSwap(last, now) {
		s.cfg.logger.Error("localqueue: the WAL can't be copied into the database file; it grows until that works", "dir", s.dir, "err", err)
	}
}

type queryRower interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// walState returns the WAL's size in pages and how many of them are copied. An error of the file's shows in the next write.
func walState(db queryRower) (size, copied int) {
	var busy int
	if err := db.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &size, &copied); err != nil {
		return 0, 0
	}
	return size, copied
}
