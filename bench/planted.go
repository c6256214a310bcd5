//go:build !planted

package bench

import "github.com/localqueue/localqueue/queue"

// What the build tag planted breaks: see planted_faults.go.

func plantedTwice() bool              { return false }
func plantedLoss(*queue.Queue, int64) {}
