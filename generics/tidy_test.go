package generics

import (
	"context"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

func TestARunningWorkerFailsExpiredJobsThatNobodyClaims(t *testing.T) {
	dir := t.TempDir()
	q := openDir[int](t, dir, queue.WithLease(time.Millisecond))
	id := put(t, q, 1, queue.MaxRetries(0))
	if _, err := q.Get(background(t)); err != nil { // and never settled
		t.Fatal(err)
	}
	if err := q.Raw().Pause(background(t)); err != nil {
		t.Fatal(err)
	}
	r := testRun(t, q)
	eventually(t, "the lease has been reclaimed", func() bool {
		n, _, err := r.tidy(background(t))
		return err == nil && n == 1
	})
	if r := record(t, q, id); r.State != queue.Failed || r.Reason != queue.LeaseExpired {
		t.Errorf("%+v", r)
	}
}

func TestARunningWorkerAppliesTheRetention(t *testing.T) {
	ctx, q := background(t), open[int](t)
	put(t, q, 1)
	drain(t, q, func(context.Context, *Job[int]) error { return nil })
	if err := q.Raw().KeepAcked(ctx, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	r := testRun(t, q)
	eventually(t, "the acked job is removed", func() bool {
		_, n, err := r.tidy(ctx)
		return err == nil && n == 1
	})
}
