package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// The model's operations of an operator.

func (o modelOp) find(id int64) *modelJob {
	if j := o.m.jobs[id]; j != nil && j.Queue == o.q.name {
		return j
	}
	return nil
}

func (o modelOp) cancel(id int64) string {
	j := o.find(id)
	switch {
	case j == nil:
		return "ErrNotFound"
	case j.State == queue.Acked || j.State == queue.Failed:
		return "ErrFinished"
	case j.State == queue.Leased:
		j.tell("cancelled", o.now, nil)
		j.leave(o.now, queue.LossCancelled)
	}
	j.State, j.Reason, j.UpdatedAt = queue.Failed, queue.Cancelled, o.now
	return ""
}

func (o modelOp) remove(id int64) string {
	j := o.find(id)
	switch {
	case j == nil:
		return "ErrNotFound"
	case j.State == queue.Leased:
		return "ErrLeased"
	}
	delete(o.m.jobs, id)
	return ""
}

func (o modelOp) runNow(id int64) string {
	j := o.find(id)
	switch {
	case j == nil:
		return "ErrNotFound"
	case j.State != queue.Delayed:
		return "ErrNotDelayed"
	}
	j.State, j.AvailableAt, j.UpdatedAt = queue.Ready, o.now, o.now
	return ""
}

func (o modelOp) retry(id int64) string {
	j := o.find(id)
	switch {
	case j == nil:
		return "ErrNotFound"
	case j.State != queue.Failed:
		return "ErrNotFailed"
	}
	if h := o.m.holder(o.q.name, j.JobID); j.JobID != "" && h != nil && h != j {
		return modelHeld(o.q.name, id, j.JobID, h.ID)
	}
	j.State, j.Reason, j.LastError, j.Attempts, j.AvailableAt, j.UpdatedAt = queue.Ready, "", "", 0, o.now, o.now
	return ""
}

func (o modelOp) retryMany(f queue.RetryFilter) (rep queue.RetryReport) {
	for _, j := range o.m.byID(o.q.name, queue.Failed) {
		picked := strings.Contains(j.LastError, f.ErrorContains) && o.old(j, f.OlderThan)
		if !picked || f.Limit > 0 && rep.Matched >= f.Limit {
			continue
		}
		rep.Matched++
		if f.DryRun {
			continue
		}
		if o.retry(j.ID) == "" {
			rep.Retried++
		} else {
			rep.Conflicts++
		}
	}
	return rep
}

// old: it is at least d since the job's last transition; 0 is any age, also one that a clock step made negative.
func (o modelOp) old(j *modelJob, d time.Duration) bool {
	return d == 0 || o.now.Sub(j.UpdatedAt) >= upToMillis(d)
}

func (o modelOp) removeMany(f queue.DeleteFilter) (n int) {
	for _, j := range o.m.byID(o.q.name, f.State) {
		if !o.old(j, f.OlderThan) {
			continue
		}
		if n++; !f.DryRun {
			delete(o.m.jobs, j.ID)
		}
	}
	return n
}

func (o modelOp) purge(olderThan time.Duration, failed bool) int {
	n := o.removeMany(queue.DeleteFilter{State: queue.Acked, OlderThan: olderThan})
	if failed {
		n += o.removeMany(queue.DeleteFilter{State: queue.Failed, OlderThan: olderThan})
	}
	return n
}

func (o modelOp) applyRetention() int {
	if o.q.keep == nil {
		return 0
	}
	return o.purge(*o.q.keep, false)
}

// Errors are compared by their sentinels, and by what the two typed errors tell.

var modelSentinels = []struct {
	name string
	err  error
}{
	{"ErrEmpty", queue.ErrEmpty}, {"ErrFull", queue.ErrFull}, {"ErrLeaseLost", queue.ErrLeaseLost}, {"ErrCancelled", queue.ErrCancelled},
	{"ErrNotFound", queue.ErrNotFound}, {"ErrNotFailed", queue.ErrNotFailed}, {"ErrNotDelayed", queue.ErrNotDelayed}, {"ErrFinished", queue.ErrFinished},
	{"ErrLeased", queue.ErrLeased}, {"ErrDuplicate", queue.ErrDuplicate}, {"ErrBusy", queue.ErrBusy}, {"ErrClosed", queue.ErrClosed},
	{"ErrOutcomeUnknown", queue.ErrOutcomeUnknown}, {"ErrForeignTx", queue.ErrForeignTx}, {"ErrPayloadTooLarge", queue.ErrPayloadTooLarge},
	{"ErrInvalid", queue.ErrInvalid}, {"ErrCorrupt", queue.ErrCorrupt}, {"ErrDiskFull", queue.ErrDiskFull}, {"ErrReadOnly", queue.ErrReadOnly},
	{"ErrIO", queue.ErrIO}, {"ErrReplaced", queue.ErrReplaced},
}

// modelKind is "" for nil, else the sentinels that an error matches, else its text.
func modelKind(err error) string {
	if err == nil {
		return ""
	}
	var parts []string
	for _, s := range modelSentinels {
		if errors.Is(err, s.err) {
			parts = append(parts, s.name)
		}
	}
	if len(parts) == 0 {
		return err.Error()
	}
	if lost, ok := errors.AsType[*queue.LeaseLostError](err); ok {
		parts = append(parts, fmt.Sprintf("%s: job %d of %s", lost.Cause, lost.ID, lost.Queue))
	}
	if held, ok := errors.AsType[*queue.DuplicateError](err); ok {
		parts = append(parts, fmt.Sprintf("job %d of %s: %s is held by %d", held.ID, held.Queue, held.JobID, held.Holder))
	}
	return strings.Join(parts, ", ")
}

func modelKinds(errs []error) (kinds []string) {
	for _, err := range errs {
		kinds = append(kinds, modelKind(err))
	}
	return kinds
}

func modelLost(name string, id int64, cause queue.LossCause) string {
	parts := []string{"ErrLeaseLost"}
	switch cause {
	case queue.LossNoSuchJob:
		parts = append(parts, "ErrNotFound")
	case queue.LossCancelled:
		parts = append(parts, "ErrCancelled")
	}
	return strings.Join(slices.Concat(parts, []string{fmt.Sprintf("%s: job %d of %s", cause, id, name)}), ", ")
}

func modelHeld(name string, id int64, key string, holder int64) string {
	return fmt.Sprintf("ErrDuplicate, job %d of %s: %s is held by %d", id, name, key, holder)
}
