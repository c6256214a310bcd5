package queue

import (
	"context"
	"strconv"

	"github.com/mattn/go-sqlite3"
)

// GraceInBatch is how long a caller without time waits for a commit.
const GraceInBatch = graceInBatch

// Waiting is how many calls of a Store wait for a ring: what a test needs to know before it rings.
func Waiting(s *Store) int64 { return s.bells.waiting.Load() }

// Joined is how many calls wait for the transaction that follows the one under way.
func Joined(s *Store) int { return s.w.group.Waiting() }

// InTransaction runs fn in a transaction that others may share, as an operation does.
func InTransaction(ctx context.Context, s *Store, fn func() error) error {
	return s.write(ctx, &op{rows: 1, run: func(*txn) error { return fn() }})
}

// HoldCommits has every COMMIT of the Store's writer send to reached and wait for a value from release.
func HoldCommits(s *Store, reached chan<- struct{}, release <-chan struct{}) error {
	return s.exclusively(context.Background(), func(*patience) error {
		return s.w.conn.Raw(func(dc any) error {
			dc.(*sqlite3.SQLiteConn).RegisterCommitHook(func() int {
				reached <- struct{}{}
				<-release
				return 0
			})
			return nil
		})
	})
}

// DataVersion moves with every commit of the Store's writer.
func DataVersion(s *Store) (int64, error) {
	var v int64
	err := s.reader.QueryRow("PRAGMA data_version").Scan(&v)
	return v, err
}

// LimitPages bounds the file as a full disk does; 0 lifts the bound.
func LimitPages(s *Store, n int) error {
	if n == 0 {
		n = 1 << 30
	}
	return s.exclusively(context.Background(), func(*patience) error {
		var got int
		return s.w.conn.QueryRowContext(context.Background(), "PRAGMA max_page_count = "+strconv.Itoa(n)).Scan(&got)
	})
}
