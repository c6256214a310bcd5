//go:build unix

package bench

import (
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Roles that a process can play.
const (
	roleCycle    = "cycle"    // put, get, ack, over and over
	roleProducer = "producer" // only puts
	roleConsumer = "consumer" // only gets and acks
	roleWaiter   = "waiter"   // waits for jobs that come seldom
	rolePacer    = "pacer"    // puts seldom, so that receivers wait
	roleCrowder  = "crowder"  // puts into a full queue, and waits for room
	roleMaker    = "maker"    // makes room, seldom
	roleWorker   = "worker"   // a generics.Worker whose handler does nothing
)

// task is what a process is told to do.
type task struct {
	Role       string           `json:"role"`
	Dir        string           `json:"dir"`
	Journal    string           `json:"journal"`
	AtOnce     bool             `json:"at_once"` // records must outlive the process
	Goroutines int              `json:"goroutines"`
	Payload    int              `json:"payload"`
	Batch      int              `json:"batch"` // above 0: so many jobs a call
	Duration   time.Duration    `json:"duration"`
	Count      int              `json:"count"` // rounds of each goroutine, without a Duration
	Pause      time.Duration    `json:"pause"` // of roles that do something seldom
	Idle       time.Duration    `json:"idle"`  // a waiter first waits so long for nothing
	Durability queue.Durability `json:"durability"`
	NoLine     bool             `json:"no_line"`
	Poll       time.Duration    `json:"poll"`
	Lease      time.Duration    `json:"lease"`
	MaxPending int              `json:"max_pending"`
}

func (t *task) options() []queue.Option {
	opts := []queue.Option{queue.MustExist(), queue.WithDurability(t.Durability), queue.WithMaxRetries(1 << 20), queue.WithMaxPending(t.MaxPending)}
	if t.NoLine {
		opts = append(opts, queue.WithoutLine())
	}
	if t.Poll > 0 {
		opts = append(opts, queue.WithPoll(t.Poll))
	}
	if t.Lease > 0 {
		opts = append(opts, queue.WithLease(t.Lease))
	}
	return opts
}

// outcome is what a process has measured.
type outcome struct {
	Error      string            `json:"error,omitempty"`
	Done       int64             `json:"done"`    // units of the role's work, completed before the end
	Jobs       int64             `json:"jobs"`    // those, in jobs
	Elapsed    time.Duration     `json:"elapsed"` // from the start to the last unit
	Gap        time.Duration     `json:"gap"`     // the longest time without a completed operation
	CPU        time.Duration     `json:"cpu"`
	PeakRSS    int64             `json:"peak_rss"`
	Busy       int64             `json:"busy"` // operations that ended with ErrBusy
	Lost       int64             `json:"lost"` // acks that came after the lease's end
	Idle       time.Duration     `json:"idle"`
	IdleCPU    time.Duration     `json:"idle_cpu"`
	Histograms map[string][]byte `json:"histograms"`
}

// message is what a process says: first that it is ready, then how it went.
type message struct {
	Ready   bool     `json:"ready,omitempty"`
	Outcome *outcome `json:"outcome,omitempty"`
}
