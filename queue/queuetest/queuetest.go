// Package queuetest opens Stores for tests.
package queuetest

import (
	"testing"

	"github.com/localqueue/localqueue/queue"
)

// Open opens a Store in a temporary directory that goes with the test. It stands in for ":memory:", which is refused: a
// queue is a file.
func Open(tb testing.TB, opts ...queue.Option) *queue.Store {
	tb.Helper()
	return OpenDir(tb, tb.TempDir(), opts...)
}

// OpenDir opens a Store in dir and closes it with the test.
func OpenDir(tb testing.TB, dir string, opts ...queue.Option) *queue.Store {
	tb.Helper()
	s, err := queue.Open(dir, opts...)
	if err != nil {
		tb.Fatalf("open a queue for the test: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close the test's queue: %v", err)
		}
	})
	return s
}
