package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// goqite's runner leaves one goroutine per job asleep, for 4 s with its defaults, to extend the job's timeout.
		goleak.IgnoreAnyFunction("maragu.dev/goqite/jobs.(*Runner).receiveAndRun.func1.3"),
		// backlite's dispatcher, once stopped, can wait for ever for a free worker of its own.
		goleak.IgnoreAnyFunction("github.com/mikestefanello/backlite.(*dispatcher).fetch"),
	)
}

// open opens a Go peer's queue in a fresh directory.
func open(t *testing.T, c contender, s setting) session {
	t.Helper()
	if err := c.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	var open func(context.Context, string, setting) (session, error)
	switch p := c.(type) {
	case *goPeer:
		open = p.open
	case *goqitePeer:
		open = p.open
	}
	q, err := open(t.Context(), t.TempDir(), s)
	if errors.Is(err, errNoWay) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// each runs a test for every Go peer under every setting.
func each(t *testing.T, test func(t *testing.T, s session)) {
	for _, c := range goPeers() {
		for _, s := range settings {
			t.Run(c.about().Name+"/"+string(s), func(t *testing.T) { test(t, open(t, c, s)) })
		}
	}
}

const few = 30

func TestWhatIsPutIsReceivedOnceByHand(t *testing.T) {
	each(t, func(t *testing.T, s session) {
		g, ok := s.(getter)
		if !ok {
			t.Skip("jobs are taken by a worker only")
		}
		want := putFew(t, s)
		var got []string
		for {
			payload, ok, err := g.getAck(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			got = append(got, payload)
		}
		same(t, got, want)
	})
}

func TestWhatIsPutIsReceivedOnceInBatches(t *testing.T) {
	each(t, func(t *testing.T, s session) {
		g, ok := s.(batchGetter)
		if !ok {
			t.Skip("it has no batch form of get")
		}
		want := putFew(t, s)
		var got []string
		for {
			batch, err := g.getAckMany(t.Context(), few/4)
			if err != nil {
				t.Fatal(err)
			}
			if len(batch) == 0 {
				break
			}
			got = append(got, batch...)
		}
		same(t, got, want)
	})
}

func TestAWorkerGetsEachJobOnceAndLeavesNoneForTheNext(t *testing.T) {
	each(t, func(t *testing.T, s session) {
		w, ok := s.(worker)
		if !ok {
			t.Skip("it has no worker")
		}
		source := &payloads{size: payloadBytes}
		want := source.many(few)
		put := s.(batchPutter).putMany
		if p, ok := s.(workerPutter); ok {
			put = p.putForWorker
		}
		if err := put(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		same(t, workUntil(t, w, few), want)
		if b, ok := s.(*backliteSession); ok {
			// Its stopped dispatcher may still take a task that is put now. What is settled is deleted: this tells as much.
			var left int
			if err := b.db.QueryRowContext(t.Context(), "SELECT count(*) FROM backlite_tasks").Scan(&left); err != nil || left > 0 {
				t.Errorf("%d tasks are left, %v", left, err)
			}
			return
		}

		// Had the first worker left jobs unsettled, the second would get them before this one.
		last := source.many(1)
		if err := put(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		same(t, workUntil(t, w, 1), last)
	})
}

// workUntil runs the worker until it has handled n jobs.
func workUntil(t *testing.T, w worker, n int) (got []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	if err := w.work(ctx, handlers, func(payload string) {
		mu.Lock()
		defer mu.Unlock()
		if got = append(got, payload); len(got) == n {
			stop()
		}
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// putFew puts one by one and, where that exists, as a batch.
func putFew(t *testing.T, s session) []string {
	t.Helper()
	source := &payloads{size: payloadBytes}
	want := source.many(few)
	for _, p := range want {
		if err := s.put(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if b, ok := s.(batchPutter); ok {
		more := source.many(few)
		if err := b.putMany(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		want = append(want, more...)
	}
	return want
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("received %d jobs that aren't the %d put: %q", len(got), len(want), got)
	}
}

func TestEverySettingIsReallyInForce(t *testing.T) {
	each(t, func(t *testing.T, s session) {
		f, err := s.inForce(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", f)
		if f.JournalMode == "" || f.Synchronous == "" || f.PageSize == "" || f.BusyTimeout == "" || f.SQLite == "" {
			t.Errorf("a pragma wasn't read: %+v", f)
		}
	})
	for _, c := range goPeers() {
		for s, level := range map[setting]string{settingNormal: "NORMAL", settingFull: "FULL"} {
			f, err := open(t, c, s).inForce(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.JournalMode != "wal" || f.Synchronous != level {
				t.Errorf("%s, %s: %+v", c.about().Name, s, f)
			}
		}
	}
}

func TestAPythonQueueReceivesWhatWasPut(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the Python queues need their package registry")
	}
	for _, c := range pythonPeers("build") {
		t.Run(c.about().Name, func(t *testing.T) {
			if err := c.prepare(t.Context()); err != nil {
				t.Skip(err)
			}
			m, err := c.run(t.Context(), task{Work: workExact, Setting: settingFull, Payload: payloadBytes, Count: few}, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			same(t, m.Payloads, (&payloads{size: payloadBytes}).many(few))
			if m.InForce.JournalMode != "wal" || m.InForce.Synchronous != "FULL" {
				t.Errorf("in force: %+v", m.InForce)
			}
		})
	}
}

func TestEveryWorkIsMeasuredOrLeftOutWithAReason(t *testing.T) {
	for _, c := range goPeers() {
		if err := c.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, w := range works {
			t.Run(c.about().Name+"/"+string(w.work), func(t *testing.T) {
				todo := taskFor(w.work, settingNormal, 0.02)
				todo.Backlog, todo.Batch, todo.Payload = 10, 10, min(todo.Payload, 5000)
				m, err := c.run(t.Context(), todo, t.TempDir())
				switch {
				case errors.Is(err, errNoWay):
					if err.Error() == "" {
						t.Error("left out without a reason")
					}
				case err != nil:
					t.Error(err)
				case m.Jobs == 0 || m.Seconds <= 0 || m.Errors > 0:
					t.Errorf("%+v", m)
				}
			})
		}
	}
}
