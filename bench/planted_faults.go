//go:build planted

package bench

import (
	"cmp"
	"context"
	"os"
	"sync/atomic"

	"github.com/localqueue/localqueue/queue"
)

// The benchmark's processes, broken in the way that LOCALQUEUE_BENCH_FAULT names: the accounting has to notice. (The
// fault doorbell-not-rung is the engine's: LOCALQUEUE_FAULT=silent-doorbell.)

// Faults are the names that LOCALQUEUE_BENCH_FAULT takes.
var Faults = []string{
	"claimed-twice", // a process settles a delivery twice
	"put-lost",      // a put was answered, and the job isn't in the file
}

var (
	fault        = cmp.Or(os.Getenv("LOCALQUEUE_BENCH_FAULT"), os.Getenv("LOCALQUEUE_FAULT")) // the engine doesn't know these names
	plantedCalls atomic.Int64
)

func plantedTwice() bool { return fault == "claimed-twice" && plantedCalls.Add(1)%20 == 0 }

func plantedLoss(q *queue.Queue, id int64) {
	if fault == "put-lost" && plantedCalls.Add(1)%20 == 0 {
		_ = q.Delete(context.Background(), id) // somebody may have claimed it already: another will do
	}
}
