package queue_test

import (
	"time"

	"github.com/localqueue/localqueue/queue"
)

// The operations of a lane that look, and those that keep house.

func (l *lane) reclaim() (queue.Reclaimed, error) {
	r := l.run("reclaim", wireRequest{})
	return r.Reclaimed, r.Err.error
}

func (l *lane) peek() (*queue.Record, error) {
	r := l.run("peek", wireRequest{})
	return r.Record, r.Err.error
}

func (l *lane) show(id int64) (*queue.Record, []queue.Delivery, error) {
	r := l.run("show", wireRequest{ID: id})
	return r.Record, r.History, r.Err.error
}

func (l *lane) showKey(key string) (*queue.Record, []queue.Delivery, error) {
	r := l.run("showKey", wireRequest{Key: bin(key)})
	return r.Record, r.History, r.Err.error
}

func (l *lane) mustShow(id int64) *queue.Record {
	l.w.t.Helper()
	rec, _, err := l.show(id)
	l.w.ok(err)
	return rec
}

func (l *lane) history(id int64) []queue.Delivery {
	l.w.t.Helper()
	_, story, err := l.show(id)
	l.w.ok(err)
	return story
}

// entries is the history of a job, which must have so many.
func (l *lane) entries(id int64, n int) []queue.Delivery {
	l.w.t.Helper()
	story := l.history(id)
	if len(story) != n {
		l.w.t.Fatalf("the history of job %d has %d entries, want %d: %+v", id, len(story), n, story)
	}
	return story
}

func (l *lane) list(state queue.State, o queue.ListOptions) (queue.Page, error) {
	r := l.run("list", wireRequest{State: state, List: o})
	return r.Page, r.Err.error
}

func (l *lane) listFailed(o queue.ListOptions) (queue.Page, error) {
	r := l.run("listFailed", wireRequest{List: o})
	return r.Page, r.Err.error
}

func (l *lane) all(state queue.State) ([]queue.Record, error) {
	r := l.run("all", wireRequest{State: state})
	return r.Records, r.Err.error
}

// ids lists the jobs of a state.
func (l *lane) ids(state queue.State) (ids []int64) {
	l.w.t.Helper()
	records, err := l.all(state)
	l.w.ok(err)
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

func (l *lane) retry(id int64) error { return l.run("retry", wireRequest{ID: id}).Err.error }

func (l *lane) retryMany(f queue.RetryFilter) (queue.RetryReport, error) {
	r := l.run("retryMany", wireRequest{Retry: f})
	return r.Retried, r.Err.error
}

func (l *lane) delete(id int64) error { return l.run("delete", wireRequest{ID: id}).Err.error }

func (l *lane) deleteMany(f queue.DeleteFilter) (int, error) {
	r := l.run("deleteMany", wireRequest{Delete: f})
	return r.N, r.Err.error
}

func (l *lane) cancel(id int64) error { return l.run("cancel", wireRequest{ID: id}).Err.error }
func (l *lane) runNow(id int64) error { return l.run("runNow", wireRequest{ID: id}).Err.error }
func (l *lane) pause() error          { return l.run("pause", wireRequest{}).Err.error }
func (l *lane) resume() error         { return l.run("resume", wireRequest{}).Err.error }
func (l *lane) keepAcked(d time.Duration) error {
	return l.run("keepAcked", wireRequest{For: d}).Err.error
}
func (l *lane) keepForever() error { return l.run("keepForever", wireRequest{}).Err.error }

func (l *lane) applyRetention() (int, error) {
	r := l.run("applyRetention", wireRequest{})
	return r.N, r.Err.error
}

func (l *lane) purge(olderThan time.Duration, failed bool) (int, error) {
	r := l.run("purge", wireRequest{For: olderThan, Failed: failed})
	return r.N, r.Err.error
}

func (l *lane) check(quick bool) ([]queue.Finding, error) {
	r := l.run("check", wireRequest{Quick: quick})
	return r.Findings, r.Err.error
}

func (l *lane) queues() ([]queue.Stats, error) {
	r := l.run("queues", wireRequest{})
	return r.Stats, r.Err.error
}

func (l *lane) vacuum() error { return l.run("vacuum", wireRequest{}).Err.error }

// waiting is how many calls wait for a ring, in all Stores.
func (w *world) waiting() (n int) {
	w.t.Helper()
	for i := range w.peers {
		r := w.peer(i).run("waiting", wireRequest{})
		w.ok(r.Err.error)
		n += r.N
	}
	return n
}

// untilWaiting returns once n calls wait.
func (w *world) untilWaiting(n int) {
	w.t.Helper()
	w.until("calls that wait", func() bool { return w.waiting() == n })
}

// until looks again and again, with no more than a moment between, for what must come.
func (w *world) until(what string, reached func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	for !reached() {
		select {
		case <-deadline:
			w.t.Fatalf("waited %v in vain for %s", patience, what)
		case <-time.After(200 * time.Microsecond):
		}
	}
}
