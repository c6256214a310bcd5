package doctor

import (
	"fmt"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const (
	patience  = time.Minute // what takes longer than this isn't about to happen by itself
	manyRows  = 100_000     // finished jobs that are worth a word
	skew      = time.Minute // how far clocks may differ
	farFuture = 100*365*24*time.Hour + skew
)

// judgeClock: a clock that ran ahead has put times into the file that make jobs wait, and leases last.
func judgeClock(f *queue.Facts, found *findings) {
	latest := f.LatestStamp
	for _, q := range f.Queues {
		if q.LastSettled.After(latest) {
			latest = q.LastSettled
		}
	}
	if ahead := latest.Sub(f.At); ahead > skew {
		found.add(Problem, FutureStamps, fmt.Sprintf("jobs bear times up to %s ahead (%s): a clock was wrong, or this one is now", round(ahead), latest.Format(time.RFC3339)),
			"set the clocks of the machine and its containers; ages, delays and retention are right again when that time has passed")
	}
}

func judgeQueue(f *queue.Facts, q *queue.QueueFacts, found *findings) {
	add := func(severity Severity, code Code, text, advice string) {
		*found = append(*found, Finding{Severity: severity, Code: code, Queue: q.Queue, Text: text, Advice: advice})
	}
	judgeLeases(f, q, add)
	if q.LastDue.Sub(f.At) > farFuture {
		add(Problem, FarDelay, fmt.Sprintf("a job is due in the year %d", q.LastDue.Year()), "list --state delayed shows it last; run it now, or delete it")
	}
	if q.Paused {
		add(Note, Paused, fmt.Sprintf("claims are paused, with %d due", q.Ready-q.Delayed), "resume it when they are to go on")
	} else if !q.HeadSince.IsZero() && q.Processing == q.Expired {
		if waits := f.At.Sub(q.HeadSince); waits > patience {
			add(Note, NobodyClaims, fmt.Sprintf("jobs have been due for %s, and nobody works on any", round(waits)), "start a worker")
		}
	}
	switch {
	case q.KeepAcked == nil && q.Acked >= manyRows:
		add(Note, AckedGrown, fmt.Sprintf("%d acked jobs are kept, and nothing ever removes one", q.Acked), "purge --older-than 168h, say, and set --keep-acked to a time")
	case q.KeepAcked != nil && !q.FirstAcked.IsZero():
		if late := f.At.Sub(q.FirstAcked) - *q.KeepAcked; late > max(time.Hour, *q.KeepAcked/10) {
			add(Note, RetentionLate, fmt.Sprintf("acked jobs are kept for %s longer than was set: running workers would remove them", round(late)), "start a worker, or purge")
		}
	}
	if q.Failed >= manyRows {
		add(Note, FailedGrown, fmt.Sprintf("there are %d dead letters", q.Failed), "list --state failed; retry what can work now, purge --include-failed the rest")
	}
}

func judgeLeases(f *queue.Facts, q *queue.QueueFacts, add func(Severity, Code, string, string)) {
	if q.Expired > 0 {
		text := fmt.Sprintf("%d expired %s to be picked up", q.Expired, plural(int(q.Expired), "delivery is", "deliveries are"))
		switch since := f.At.Sub(q.FirstLeaseEnd); {
		case q.FirstLeaseEnd.IsZero():
			add(Problem, StuckLeases, text+"; a lease has no end", "reclaim; any claim or worker on the queue does so too")
		case since > patience:
			add(Problem, StuckLeases, text+", the first for "+round(since), "reclaim, or start a worker; any claim on the queue does so too")
		default:
			add(Note, ExpiredLeases, text, "the next claim does so by itself")
		}
	}
	if q.LastLeaseEnd.Sub(f.At) > farFuture {
		add(Problem, FarLease, fmt.Sprintf("a lease ends in the year %d: should its receiver die, the job stays with it", q.LastLeaseEnd.Year()), "cancel the job and retry it")
	}
}

// round leaves a duration readable.
func round(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.Round(time.Second).String()
}
