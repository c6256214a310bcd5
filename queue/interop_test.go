package queue_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/sql/sqlite/migrations"
)

// The real Python package takes turns with us on one directory. It comes from PyPI, or from the wheels in
// LOCALQUEUE_PYTHON_WHEELS; where neither can be had the tests say so and are left out.

// originals are the versions it is tried with: the first and the last, or with LOCALQUEUE_CASES=full those between too.
func originals() []string {
	return []string{"1.0.0", "1.4.1", "1.1.0", "1.2.0"}[:sized(2, 4)]
}

func TestThePythonPackageAndWeTakeTurns(t *testing.T) {
	for _, version := range originals() {
		t.Run(version, func(t *testing.T) {
			installed := installOriginal(t, version)
			for name, turn := range map[string]func(*testing.T, string){
				"Python puts and Go works":                         pythonThenGo,
				"Go puts and Python works":                         goThenPython,
				"Python works on a file that goose has led back":   goDownThenPython,
				"priority, pause, headers and keys":                notSeenByPython,
				"what is delayed":                                  delayedForPython,
				"a payload beside its row":                         besideTheRow,
				"retention":                                        keptByPython,
				"a dead letter of ours that Python retries":        retriedByPython,
				"delivery numbers of jobs that Python has claimed": numberedClaims,
			} {
				t.Run(name, func(t *testing.T) { turn(t, installed) })
			}
		})
	}
}

// laterStore opens the directory two hours from now: the original's leases and delays of an hour have ended.
func laterStore(t *testing.T, dir string) *queue.Store {
	t.Helper()
	return openStore(t, dir, queue.WithClock(func() time.Time { return time.Now().Add(2 * time.Hour) }))
}

// drain acks all there is to claim and returns the payloads.
func drain(t *testing.T, q *queue.Queue) (payloads []string) {
	t.Helper()
	for {
		j, err := q.TryGet(t.Context())
		if errors.Is(err, queue.ErrEmpty) {
			return payloads
		}
		ok(t, err)
		payloads = append(payloads, string(j.Payload))
		ok(t, j.Ack(t.Context()))
	}
}

func mustPut(t *testing.T, q *queue.Queue, payload string, opts ...queue.PutOption) int64 {
	t.Helper()
	res, err := q.Put(t.Context(), []byte(payload), opts...)
	ok(t, err)
	return res.ID
}

func mustShow(t testing.TB, q *queue.Queue, id int64) queue.Record {
	t.Helper()
	r, _, err := q.Show(t.Context(), id)
	ok(t, err)
	return *r
}

func pythonThenGo(t *testing.T, installed string) {
	dir := t.TempDir()
	p := startPython(t, installed, dir)
	for i, data := range []any{"acked", "delayed", "failed", "leased", doing{"text": "grüße, 世界"}, json.Number("1970670598291982290")} {
		p.expect(fmt.Sprint(i+1), "put", doing{"data": data, "job_id": fmt.Sprint("k", i)})
	}
	for id, data := range []string{`"acked"`, `"delayed"`, `"failed"`, `"leased"`} {
		p.expect(pythonJob(int64(id+1), data, 0), "get", doing{"lease": 3600})
	}
	p.expect("null", "ack", doing{"id": 1})
	p.expect("null", "nack", doing{"id": 2, "delay": 3600, "last_error": "later"})
	p.expect("null", "fail", doing{"id": 3, "last_error": "no"})
	p.kill()

	s := openStore(t, dir)
	q := queueOf(t, s, "jobs")
	want := queue.Stats{Ready: 3, Delayed: 1, Processing: 1, Acked: 1, Failed: 1}
	same(t, "stats", want, stats(t, q))
	same(t, "a key that Python has put", int64(5), mustPut(t, q, "", queue.JobID("k4")))
	same(t, "ready", []string{`{"text": "gr\u00fc\u00dfe, \u4e16\u754c"}`, `1970670598291982290`}, drain(t, q))
	ok(t, s.Close())
	s = laterStore(t, dir)
	q = queueOf(t, s, "jobs")
	ok(t, q.RetryFailed(t.Context(), 3))
	same(t, "delayed, retried and left by a killed process", []string{`"delayed"`, `"failed"`, `"leased"`}, drain(t, q))
	same(t, "its attempts go on", []any{2, int64(2)}, []any{mustShow(t, q, 2).Attempts, mustShow(t, q, 2).Delivery})
	healthy(t, s)
	all := stats(t, q)
	ok(t, s.Close())

	p = startPython(t, installed, dir)
	p.agreesWith(all)
	p.expect("null", "get", nil)
	p.stop()
}

func goThenPython(t *testing.T, installed string) {
	dir := t.TempDir()
	s := openStore(t, dir, queue.InlinePayloads())
	q := queueOf(t, s, "jobs")
	big := `"` + repeat("x", 20000) + `"`
	for _, payload := range []string{`"nacked by Go"`, `"leased by Go"`, `"failed by Go"`, `"acked by Go"`} {
		mustPut(t, q, payload)
	}
	for _, payload := range []string{`{"text":"grüße"}`, big, `"exhausted"`} {
		mustPut(t, q, payload, queue.JobID("key of "+payload[:5]), queue.MaxRetries(1))
	}
	claimed, err := q.TryGetMany(t.Context(), 4)
	ok(t, err)
	ok(t, claimed[0].Nack(t.Context(), errors.New("try again")))
	ok(t, claimed[2].Fail(t.Context(), errors.New("no")))
	ok(t, claimed[3].Ack(t.Context()))
	before := stats(t, q)
	ok(t, s.Close())

	p := startPython(t, installed, dir)
	p.agreesWith(before)
	p.expect(`[[3, "failed by Go", 1, "no"]]`, "failed", nil)
	p.expect("5", "put", doing{"data": "again", "job_id": `key of {"tex`})
	p.expect(pythonJob(1, `"nacked by Go"`, 1), "get", nil)
	p.expect("null", "ack", doing{"id": 1})
	p.expect(pythonJob(5, `{"text": "gr\u00fc\u00dfe"}`, 0), "get", nil)
	p.expect("null", "nack", doing{"id": 5, "delay": 3600, "last_error": "Python: später"})
	p.expect(pythonJob(6, big, 0), "get", nil)
	p.expect("null", "fail", doing{"id": 6, "last_error": "Python: no"})
	for attempt := range 2 {
		p.expect(pythonJob(7, `"exhausted"`, attempt), "get", nil)
		p.expect("null", "nack", doing{"id": 7, "last_error": "Python: again"})
	}
	p.expect("null", "get", nil)
	p.stop()

	s = openStore(t, dir)
	q = queueOf(t, s, "jobs")
	same(t, "stats", queue.Stats{Ready: 1, Delayed: 1, Processing: 1, Acked: 2, Failed: 3}, stats(t, q))
	healthy(t, s)
	same(t, "Go's receipt outlives Python's turn", error(nil), q.Ack(t.Context(), 2, claimed[1].Receipt))
	sent := mustShow(t, q, 5)
	same(t, "sent back by Python", []any{queue.Delayed, 1, "Python: später"}, []any{sent.State, sent.Attempts, sent.LastError})
	for id, text := range map[int64]string{6: "Python: no", 7: "Python: again"} {
		r, story, err := q.Show(t.Context(), id)
		ok(t, err)
		same(t, "failed by Python: no history, no reason", []any{queue.Failed, text, queue.UnknownReason, 0},
			[]any{r.State, r.LastError, r.Reason, len(story)})
		ok(t, q.RetryFailed(t.Context(), id))
	}
	_, story, err := q.Show(t.Context(), 1)
	ok(t, err)
	same(t, "Go's history stays", 1, len(story))
	ok(t, q.RunNow(t.Context(), 5))
	same(t, "the rest", []string{`{"text":"grüße"}`, big, `"exhausted"`}, drain(t, q))
	healthy(t, s)
}

func goDownThenPython(t *testing.T, installed string) {
	dir := t.TempDir()
	s := openStore(t, dir)
	q := queueOf(t, s, "jobs")
	big := `"` + repeat("x", 20000) + `"`
	for _, payload := range []string{`"acked"`, `"failed"`, `"small"`, big} {
		mustPut(t, q, payload, queue.JobID(payload[:4]))
	}
	claimed, err := q.TryGetMany(t.Context(), 2)
	ok(t, err)
	ok(t, errors.Join(claimed[0].Ack(t.Context()), claimed[1].Fail(t.Context(), errors.New("no"))))
	ok(t, s.Close())
	gooseDown(t, dir)

	p := startPython(t, installed, dir)
	p.expect(`{"ready": 2, "processing": 0, "acked": 1, "failed": 1}`, "stats", nil)
	p.expect(pythonJob(3, `"small"`, 0), "get", nil)
	p.expect("null", "ack", doing{"id": 3})
	p.expect(pythonJob(4, big, 0), "get", nil)
	p.expect("null", "nack", doing{"id": 4, "last_error": "again"})
	p.expect("null", "retry", doing{"id": 2})
	p.expect("5", "put", doing{"data": "by Python"})
	p.stop()

	s = openStore(t, dir)
	q = queueOf(t, s, "jobs")
	same(t, "stats", queue.Stats{Ready: 3, Acked: 2}, stats(t, q))
	same(t, "jobs", []string{`"failed"`, big, `"by Python"`}, drain(t, q))
	healthy(t, s)
}

func gooseDown(t *testing.T, dir string) {
	t.Helper()
	db, err := openRaw(dir)
	ok(t, err)
	db.SetMaxOpenConns(1)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.FS)
	ok(t, err)
	_, err = p.DownTo(t.Context(), 0)
	ok(t, errors.Join(err, db.Close()))
}

func notSeenByPython(t *testing.T, installed string) {
	dir := t.TempDir()
	s := openStore(t, dir)
	q := queueOf(t, s, "jobs")
	mustPut(t, q, `"low"`, queue.Header("trace", "7"))
	mustPut(t, q, `"high"`, queue.Priority(9))
	mustPut(t, q, `"given up"`, queue.JobID("pending"), queue.UniqueWhilePending(), queue.Priority(10))
	j, err := q.TryGet(t.Context())
	ok(t, err)
	ok(t, j.Ack(t.Context()))
	ok(t, q.Pause(t.Context()))
	ok(t, s.Close())

	p := startPython(t, installed, dir)
	p.expect(pythonJob(1, `"low"`, 0), "get", nil) // from a paused queue, and in the order of ids
	p.expect("null", "nack", doing{"id": 1, "last_error": "again"})
	p.expect(pythonJob(1, `"low"`, 1), "get", nil)
	p.expect("null", "nack", doing{"id": 1})
	p.does("put", doing{"data": "a new one", "job_id": "pending"}) // before 1.4 the answer is the old job's id
	p.stop()

	s = openStore(t, dir)
	q = queueOf(t, s, "jobs")
	if _, err := q.TryGet(t.Context()); !errors.Is(err, queue.ErrEmpty) {
		t.Fatalf("the queue is paused, and delivers: %v", err)
	}
	same(t, "headers stay", map[string]string{"trace": "7"}, mustShow(t, q, 1).Headers)
	ok(t, q.Resume(t.Context()))
	same(t, "by priority; the key that was given up was free", []string{`"high"`, `"low"`, `"a new one"`}, drain(t, q))
	healthy(t, s)
}

func delayedForPython(t *testing.T, installed string) {
	dir := t.TempDir()
	s := openStore(t, dir)
	q := queueOf(t, s, "jobs")
	mustPut(t, q, `"due in an hour"`, queue.Delay(time.Hour))
	mustPut(t, q, `"due"`, queue.Delay(time.Millisecond))
	ok(t, s.Close())

	p := startPython(t, installed, dir)
	got := "null"
	for range 1000 { // it falls due while Python starts
		if got = p.does("get", nil); got != "null" {
			break
		}
	}
	same(t, "a job that nobody has promoted", pythonJob(2, `"due"`, 0), got)
	p.expect("null", "get", nil)
	p.expect("null", "ack", doing{"id": 2})
	p.stop()

	s = openStore(t, dir)
	same(t, "stats", queue.Stats{Ready: 1, Delayed: 1, Acked: 1}, stats(t, queueOf(t, s, "jobs")))
	healthy(t, s)
}

// Without InlinePayloads a large payload is beside its row, where the package doesn't look. The job is not lost.
func besideTheRow(t *testing.T, installed string) {
	dir := t.TempDir()
	s := openStore(t, dir)
	big := `"` + repeat("x", 20000) + `"`
	mustPut(t, queueOf(t, s, "jobs"), big)
	ok(t, s.Close())

	p := startPython(t, installed, dir)
	if got := p.does("get", nil); !strings.HasPrefix(got, "error JSONDecodeError") {
		t.Errorf("Python reads %q", got)
	}
	p.stop()

	s = laterStore(t, dir)
	q := queueOf(t, s, "jobs")
	same(t, "the job after its lease", []string{big}, drain(t, q))
	same(t, "attempts", 2, mustShow(t, q, 1).Attempts)
	healthy(t, s)
}

func keptByPython(t *testing.T, installed string) {
	dir := t.TempDir()
	s := openStore(t, dir)
	q := queueOf(t, s, "jobs")
	mustPut(t, q, `"gone at its ack"`)
	ok(t, q.KeepAcked(t.Context(), 0))
	other := queueOf(t, s, "other")
	mustPut(t, other, `"with a history"`)
	for _, settle := range []func(*queue.Job) error{
		func(j *queue.Job) error { return j.Nack(t.Context(), errors.New("once")) },
		func(j *queue.Job) error { return j.Ack(t.Context()) },
	} {
		j, err := other.TryGet(t.Context())
		ok(t, err)
		ok(t, settle(j))
	}
	ok(t, s.Close())

	p := startPython(t, installed, dir)
	p.expect(pythonJob(1, `"gone at its ack"`, 0), "get", nil)
	p.expect("null", "ack", doing{"id": 1})
	p.expect(`{"ready": 0, "processing": 0, "acked": 0, "failed": 0}`, "stats", nil)
	purged := "0"
	for range 1000 { // it is older than now from the next millisecond on
		if purged = p.does("purge", doing{"queue": "other"}); purged != "0" {
			break
		}
	}
	same(t, "purged by Python", "1", purged)
	p.stop()

	healthy(t, openStore(t, dir)) // nothing is left beside the rows
}

func retriedByPython(t *testing.T, installed string) {
	dir := t.TempDir()
	s := openStore(t, dir)
	q := queueOf(t, s, "jobs")
	mustPut(t, q, `1`, queue.MaxRetries(0))
	j, err := q.TryGet(t.Context())
	ok(t, err)
	ok(t, j.Fail(t.Context(), errors.New("no")))
	ok(t, s.Close())

	p := startPython(t, installed, dir)
	p.expect("null", "retry", doing{"id": 1})
	p.stop()
	s = openStore(t, dir)
	same(t, "a retried job has no reason", queue.Reason(""), mustShow(t, queueOf(t, s, "jobs"), 1).Reason)
	ok(t, s.Close())

	p = startPython(t, installed, dir)
	p.expect(pythonJob(1, "1", 0), "get", nil)
	p.expect("null", "nack", doing{"id": 1, "last_error": "exhausted"})
	p.stop()
	s = openStore(t, dir)
	r := mustShow(t, queueOf(t, s, "jobs"), 1)
	same(t, "the reason is that of its last failure here", []any{queue.Failed, queue.Permanent, "exhausted"},
		[]any{r.State, r.Reason, r.LastError})
	healthy(t, s)
}

// Python knows no delivery numbers, but its claims take one: our history has no two entries of one number.
func numberedClaims(t *testing.T, installed string) {
	dir := t.TempDir()
	s := openStore(t, dir)
	q := queueOf(t, s, "jobs")
	mustPut(t, q, `1`)
	j, err := q.TryGet(t.Context())
	ok(t, err)
	ok(t, j.Nack(t.Context(), errors.New("once")))
	ok(t, s.Close())

	p := startPython(t, installed, dir)
	p.expect(pythonJob(1, "1", 1), "get", nil)
	p.kill()

	s = laterStore(t, dir)
	q = queueOf(t, s, "jobs")
	j, err = q.TryGet(t.Context())
	ok(t, err)
	same(t, "after Python's", []any{3, int64(3)}, []any{j.Attempt, j.Delivery})
	_, story, err := q.Show(t.Context(), 1)
	ok(t, err)
	var outcomes []string
	for _, d := range story {
		outcomes = append(outcomes, fmt.Sprint(d.Number, " ", d.Outcome))
	}
	same(t, "history", []string{"1 nacked", "2 lease_expired"}, outcomes)
	healthy(t, s)
}
