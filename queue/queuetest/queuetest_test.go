package queuetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

func TestAStoreIsOpenDuringItsTestAndClosedAfterIt(t *testing.T) {
	ctx := context.Background()
	var store *queue.Store
	dir := t.TempDir()
	t.Run("during", func(t *testing.T) {
		store = queuetest.OpenDir(t, dir, queue.WithQueue("q"))
		if _, err := store.Default().Put(ctx, []byte("x")); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := store.Default().Put(ctx, nil); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("after the test: %v", err)
	}
	again := queuetest.OpenDir(t, dir, queue.MustExist(), queue.WithQueue("q"))
	if job, err := again.Default().TryGet(ctx); err != nil || string(job.Payload) != "x" {
		t.Errorf("the directory has lost its job: %v", err)
	}
}

func TestEachStoreIsEmptyAtFirst(t *testing.T) {
	for range 2 {
		store := queuetest.Open(t)
		if _, err := store.Default().TryGet(t.Context()); !errors.Is(err, queue.ErrEmpty) {
			t.Fatal(err)
		}
		if _, err := store.Default().Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
}
