//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

// told is what a terminal shows of a job at noon.
func told(t *testing.T, r queue.Record, history []queue.Delivery) string {
	t.Helper()
	var out bytes.Buffer
	a := &app{out: &out, outTerminal: true}
	if err := a.printRecord(&r, history, true, noon); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheStoryOfADeadJob(t *testing.T) {
	r := queue.Record{ID: 17, Queue: "mails", State: queue.Failed, Reason: queue.RetriesExhausted, JobID: "k\x1b", Pending: true, Payload: []byte("to: ann\n\x1b[2J"),
		Headers: map[string]string{"b": "2", "a": "1"}, Priority: 5, Attempts: 2, MaxAttempts: 2, Delivery: 6, LastError: "503\nagain", AvailableAt: at(-time.Hour),
		ClaimedAt: at(-time.Minute), ClaimedBy: "h:2", CreatedAt: at(-48 * time.Hour), UpdatedAt: at(-50 * time.Second)}
	history := []queue.Delivery{
		{Number: 1, Attempt: 1, Start: at(-47 * time.Hour), End: at(-47*time.Hour + 1500*time.Millisecond), Outcome: "nacked", Error: "first\nsecond\x1b[31m\r\n\tthird", Worker: "h:1:w"},
		{Number: 2, Attempt: 2, Start: at(-46 * time.Hour), End: at(-45 * time.Hour), Outcome: "lease_expired", Worker: "h:1:w"},
		{Number: 5, Attempt: 1, Start: at(-2 * time.Minute), End: at(-2*time.Minute + time.Second), Outcome: "panic", Error: "boom", Worker: "h:2"},
		{Number: 6, Attempt: 2, Start: at(-time.Minute), End: at(-50 * time.Second), Outcome: "nacked", Error: "503\nagain", Worker: "h:2"},
	}
	want := `id        17
queue     mails
state     failed (retries_exhausted)
attempts  2 of 2
priority  5
job_id    k\x1b (held until the job is acked or failed)
header    a=1
header    b=2

2026-02-27T12:00:00.000Z  2 days ago        put
2026-02-27T13:00:00.000Z  1 day ago         delivery 1, attempt 1, by h:1:w
2026-02-27T13:00:01.500Z  1 day ago         nacked after 1.5s
                                            | first
                                            | second\x1b[31m
                                            | \tthird
2026-02-27T14:00:00.000Z  1 day ago         delivery 2, attempt 2, by h:1:w
2026-02-27T15:00:00.000Z  1 day ago         its lease ended after 1h0m0s
                                            (deliveries 3 to 4: given back unused, or too old to be kept)
                                            (retried from the dead letters: attempts start anew)
2026-03-01T11:58:00.000Z  2 minutes ago     delivery 5, attempt 1, by h:2
2026-03-01T11:58:01.000Z  1 minute ago      panicked after 1s
                                            | boom
2026-03-01T11:59:00.000Z  1 minute ago      delivery 6, attempt 2, by h:2
2026-03-01T11:59:10.000Z  50 seconds ago    nacked after 10s
                                            | 503
                                            | again
2026-03-01T11:59:10.000Z  50 seconds ago    dead since then: it was nacked on its last attempt

payload, 12 bytes:
to: ann
\x1b[2J
`
	if diff := cmp.Diff(want, told(t, r, history)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStoryEndsWhereTheJobStands(t *testing.T) {
	base := queue.Record{ID: 1, Queue: "q", MaxAttempts: 4, CreatedAt: at(-time.Hour), UpdatedAt: at(-time.Hour), AvailableAt: at(-time.Hour)}
	once := []queue.Delivery{{Number: 1, Attempt: 1, Start: at(-30 * time.Minute), End: at(-20 * time.Minute), Outcome: "nacked", Error: "e"}}
	for _, c := range []struct {
		name    string
		change  func(r *queue.Record)
		history []queue.Delivery
		want    []string // the last lines of the story
	}{
		{"new", func(r *queue.Record) { r.State = queue.Ready }, nil,
			[]string{"2026-03-01T11:00:00.000Z  1 hour ago        put", "2026-03-01T11:00:00.000Z  1 hour ago        ready since then, to be claimed"}},
		{"delayed", func(r *queue.Record) { r.State, r.AvailableAt = queue.Delayed, at(2*time.Hour) }, nil,
			[]string{"2026-03-01T11:00:00.000Z  1 hour ago        put for 2026-03-01T14:00:00.000Z", "2026-03-01T14:00:00.000Z  2 hours from now  delayed until then"}},
		{"delayed and due", func(r *queue.Record) { r.State, r.AvailableAt = queue.Delayed, at(-time.Minute) }, nil,
			[]string{"2026-03-01T11:59:00.000Z  1 minute ago      due since then; the next claim may take it"}},
		{"ready again", func(r *queue.Record) {
			r.State, r.Attempts, r.Delivery, r.UpdatedAt, r.LastError = queue.Ready, 1, 1, at(-20*time.Minute), "e"
		}, once,
			[]string{"                                            | e", "2026-03-01T11:40:00.000Z  20 minutes ago    ready since then, to be claimed"}},
		{"retried", func(r *queue.Record) { r.State, r.Delivery, r.UpdatedAt = queue.Ready, 1, at(-time.Minute) }, once,
			[]string{"                                            (retried from the dead letters: attempts start anew)", "2026-03-01T11:59:00.000Z  1 minute ago      ready since then, to be claimed"}},
		{"released", func(r *queue.Record) { r.State, r.Delivery, r.UpdatedAt = queue.Ready, 1, at(-time.Minute) }, nil,
			[]string{"                                            (delivery 1: given back unused, or too old to be kept)", "2026-03-01T11:59:00.000Z  1 minute ago      ready since then, to be claimed"}},
		{"leased", func(r *queue.Record) {
			r.State, r.Attempts, r.Delivery, r.ClaimedAt, r.ClaimedBy, r.LeaseUntil = queue.Leased, 2, 2, at(-time.Second), "h:1", at(59*time.Second)
		}, once,
			[]string{"2026-03-01T11:59:59.000Z  1 second ago      delivery 2, attempt 2, by h:1", "2026-03-01T12:00:59.000Z  59 seconds from now  leased until then"}},
		{"leased for too long", func(r *queue.Record) {
			r.State, r.Attempts, r.Delivery, r.ClaimedAt, r.LeaseUntil = queue.Leased, 1, 1, at(-time.Hour), at(-time.Minute)
		}, nil,
			[]string{"2026-03-01T11:00:00.000Z  1 hour ago        delivery 1, attempt 1", "2026-03-01T11:59:00.000Z  1 minute ago      its lease ended, and nothing has picked it up yet"}},
		{"leased for ever", func(r *queue.Record) {
			r.State, r.Attempts, r.Delivery, r.ClaimedAt = queue.Leased, 1, 1, at(-time.Hour)
		}, nil,
			[]string{"                                            leased without an end: reclaim frees it"}},
		{"acked", func(r *queue.Record) {
			r.State, r.Attempts, r.Delivery, r.ClaimedAt, r.UpdatedAt = queue.Acked, 1, 1, at(-time.Hour), at(-59*time.Minute)
		}, nil,
			[]string{"2026-03-01T11:00:00.000Z  1 hour ago        delivery 1, attempt 1", "2026-03-01T11:01:00.000Z  59 minutes ago    acked after 1m0s"}},
		{"cancelled before a delivery", func(r *queue.Record) { r.State, r.Reason, r.LastError = queue.Failed, queue.Cancelled, "by hand" }, nil,
			[]string{"2026-03-01T11:00:00.000Z  1 hour ago        dead since then: it was cancelled", "                                            the last error:", "                                            | by hand"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := base
			c.change(&r)
			story, _, ok := strings.Cut(told(t, r, c.history), "\n\npayload, 0 bytes:\n")
			if !ok || !strings.HasSuffix(story, "\n"+strings.Join(c.want, "\n")) {
				t.Errorf("the story is\n%s\nand should end with\n%s", story, strings.Join(c.want, "\n"))
			}
		})
	}
}

// A job of a real queue, through the command: its story names each delivery, and peek tells it without the history.
func TestShowTellsTheStoryOnATerminalOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	store, err := queue.Open(dir, queue.WithName("tester"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	ctx, q := context.Background(), store.Default()
	if _, err := q.Put(ctx, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		j, err := q.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Nack(ctx, errors.New("no\nluck")); err != nil {
			t.Fatal(err)
		}
	}
	show := func(terminal bool, args ...string) string {
		t.Helper()
		p := newInProcess(dir)
		p.outTerminal = terminal
		if code := run(t.Context(), &p.app, args); code != 0 {
			t.Fatal(p.stderr.String())
		}
		return p.stdout.String()
	}
	if out := show(false, "show", "1"); out != "hello" {
		t.Errorf("to a pipe: %q", out)
	}
	story := show(true, "show", "1")
	for _, pattern := range []string{`(?m)^state +ready$`, `(?m)  put$`, `delivery 1, attempt 1, by \S+:\d+:tester`, `delivery 2, attempt 2, by `, `nacked after \d`, `\| no\n +\| luck\n`, `ready since then`, `payload, 5 bytes:\nhello\n$`} {
		if !regexp.MustCompile(pattern).MatchString(story) {
			t.Errorf("%s is not in the story:\n%s", pattern, story)
		}
	}
	if out := show(true, "peek"); strings.Contains(out, "delivery 1,") || !strings.Contains(out, "ready since then") {
		t.Errorf("peek says\n%s", out)
	}
}
