//go:build unix

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Accounting is what the journals of all processes and the file say about each job.
type Accounting struct {
	Puts         int64    `json:"puts"`
	Claims       int64    `json:"claims"`
	Acks         int64    `json:"acks"`
	Redelivered  int64    `json:"redelivered"`            // each after the end of the earlier lease
	Unanswered   int64    `json:"unanswered"`             // puts of killed processes that are in the file all the same
	Unrecorded   int64    `json:"unrecorded"`             // acks of killed processes that are in the file all the same
	FailureCount int      `json:"failures"`               // of all kinds
	Failures     []string `json:"what_failed,omitempty"`  // the first of them
	Integrity    []string `json:"what_is_sick,omitempty"` // what the file's own check found
}

const failuresShown = 10

func (a *Accounting) fail(format string, args ...any) {
	a.FailureCount++
	if len(a.Failures) < failuresShown {
		a.Failures = append(a.Failures, fmt.Sprintf(format, args...))
	}
}

// OK says whether every job is accounted for.
func (a *Accounting) OK() bool { return a.FailureCount == 0 && len(a.Integrity) == 0 }

// audit is what an accounting goes by.
type audit struct {
	journals []string
	filled   [2]int64    // the first and the last id that were put beforehand
	before   queue.Stats // after that
	lease    time.Duration
	kills    int // of processes
	lanes    int // goroutines in each: what a killed process may have had under way
	drained  bool
}

// fate is what the journals say about a job.
type fate struct {
	put    int
	acks   int
	claims []claim
}

type claim struct{ delivery, until int64 }

// settle goes through the journals and the file.
func (a *audit) settle(ctx context.Context, q *queue.Queue) (acc Accounting, err error) {
	fates := map[int64]*fate{}
	of := func(id int64) *fate {
		if fates[id] == nil {
			fates[id] = &fate{}
		}
		return fates[id]
	}
	for _, path := range a.journals {
		err := readJournal(path, func(r record) {
			f := of(r.id)
			switch r.event {
			case evPut:
				f.put++
				acc.Puts++
			case evClaim:
				f.claims = append(f.claims, claim{r.delivery, r.until})
				acc.Claims++
			case evAck:
				f.acks++
				acc.Acks++
			}
		})
		if err != nil {
			return acc, err
		}
	}
	acked := int64(0) // jobs
	for id, f := range fates {
		a.claims(&acc, id, f)
		if f.acks > 0 {
			acked++
		}
		if f.put == 0 && (id < a.filled[0] || id > a.filled[1]) {
			acc.Unanswered++
		}
		if f.acks == 0 {
			if err := a.left(ctx, &acc, q, id, f); err != nil {
				return acc, err
			}
		}
	}
	if allowed := int64(a.kills * a.lanes); acc.Unanswered > allowed {
		acc.fail("%d jobs came to light that nobody says to have put; killed processes explain at most %d", acc.Unanswered, allowed)
	}
	return acc, a.counters(ctx, &acc, q, acked)
}

// claims looks at one job's deliveries: one owner at a time, one ack.
func (a *audit) claims(acc *Accounting, id int64, f *fate) {
	if f.put > 1 {
		acc.fail("job %d: %d puts got this id", id, f.put)
	}
	if f.acks > 1 {
		acc.fail("job %d was settled %d times", id, f.acks)
	}
	slices.SortFunc(f.claims, func(x, y claim) int { return cmp.Compare(x.delivery, y.delivery) })
	for i := 1; i < len(f.claims); i++ {
		earlier, later := f.claims[i-1], f.claims[i]
		switch claimed := later.until - a.lease.Milliseconds(); {
		case later.delivery == earlier.delivery:
			acc.fail("job %d: its delivery %d was claimed twice", id, later.delivery)
		case claimed < earlier.until:
			acc.fail("job %d: delivery %d began %d ms before the lease of delivery %d had ended", id, later.delivery, earlier.until-claimed, earlier.delivery)
		default:
			acc.Redelivered++
		}
	}
	if f.acks > 0 && len(f.claims) == 0 {
		acc.fail("job %d was settled by somebody who had not claimed it", id)
	}
}

// left looks into the file for a job that nobody says to have acked.
func (a *audit) left(ctx context.Context, acc *Accounting, q *queue.Queue, id int64, f *fate) error {
	r, _, err := q.Show(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		acc.fail("job %d is lost: its put was answered, and it is not in the file", id)
		return nil
	}
	if err != nil {
		return err
	}
	switch r.State {
	case queue.Acked:
		acc.Unrecorded++
		if acc.Unrecorded > int64(a.kills*a.lanes) {
			acc.fail("job %d is acked, and nobody says to have done it", id)
		}
	case queue.Ready, queue.Delayed:
		if a.drained {
			acc.fail("job %d is still %s after all was worked off", id, r.State)
		}
	default:
		acc.fail("job %d is %s at the end (deliveries that were recorded: %d)", id, r.State, len(f.claims))
	}
	return nil
}

// counters compares the file's own figures with the journals'.
func (a *audit) counters(ctx context.Context, acc *Accounting, q *queue.Queue, acked int64) error {
	now, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	acked += acc.Unrecorded
	puts := acc.Puts + acc.Unanswered
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"acked", now.Acked, a.before.Acked + acked},
		{"ready", now.Ready, a.before.Ready + puts - acked},
		{"leased", now.Processing, 0},
		{"failed", now.Failed, a.before.Failed},
	} {
		if c.got != c.want {
			acc.fail("the file counts %d %s jobs, the journals %d", c.got, c.what, c.want)
		}
	}
	findings, err := q.Store().Check(ctx, false)
	if err != nil {
		return err
	}
	for _, f := range findings {
		acc.Integrity = append(acc.Integrity, f.Text)
	}
	return nil
}
