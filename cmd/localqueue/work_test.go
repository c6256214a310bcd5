//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

func TestWorkGoesOnWhenAProcessLeftBehindHoldsThePipes(t *testing.T) {
	p := newPlace(t)
	id := p.put("x")
	w := start(t, p.command("work", "--until-empty", "--", "sh", "-c", "sh -c 'echo $$; exec sleep 1000' & sleep 0"))
	pid := w.pid()
	w.exits(0)
	if !alive(pid) {
		t.Error("a process that a finished command had left behind was killed")
	}
	p.expect(id, queue.Acked, 1)
}

func TestAStopReachesTheWholeProcessGroup(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		p := newPlace(t)
		id := p.put("x")
		// The inner shell ignores what the outer dies of, and holds the pipes.
		w := start(t, p.command("work", "--grace", "1h", "--", "sh", "-c", "sh -c 'trap \"\" TERM INT HUP; echo $$; while :; do sleep 0.01; done' & wait"))
		inner := w.pid()
		w.signal(sig)
		w.exits(0)
		eventually(t, "the inner shell is gone", func() bool { return !alive(inner) })
		p.expect(id, queue.Ready, 0)
	}
}

func TestACommandMayFinishInItsGrace(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := newPlace(t)
		id, waiting := p.put("x"), p.put("y")
		w := start(t, p.command("work", "--", "sh", "-c", "trap 'echo asked; exit 0' TERM INT; echo up; while :; do sleep 0.01; done"))
		w.line()
		w.signal(sig)
		if got := w.line(); got != "asked" {
			t.Errorf("%v: the command said %q", sig, got)
		}
		w.exits(0)
		p.expect(id, queue.Acked, 1)
		p.expect(waiting, queue.Ready, 0)
	}
}

func TestACommandThatOutlivesItsGraceIsKilled(t *testing.T) {
	p := newPlace(t)
	id := p.put("x")
	w := start(t, p.command("work", "--grace", "50ms", "--", "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 0.01; done"))
	pid := w.pid()
	w.signal(syscall.SIGTERM)
	w.exits(1)
	if alive(pid) || !strings.Contains(w.said(), "killed because they had not ended when asked to: 1;") {
		t.Errorf("alive: %v; %s", alive(pid), w.said())
	}
	p.expect(id, queue.Ready, 0)
}

func TestTheSecondInterruptLeavesAtOnce(t *testing.T) {
	p := newPlace(t)
	id := p.put("x")
	w := start(t, p.command("work", "--grace", "1h", "--", "sh", "-c", "trap 'echo asked' TERM; echo $$; while :; do sleep 0.01; done"))
	pid := w.pid()
	w.signal(syscall.SIGTERM)
	w.line()
	w.signal(syscall.SIGINT)
	w.exits(130)
	eventually(t, "the command is gone", func() bool { return !alive(pid) })
	p.expect(id, queue.Ready, 0)
}

func TestACommandDiesWithAKilledWorker(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("only Linux ties a child to its parent's life")
	}
	p := newPlace(t)
	p.put("x")
	w := start(t, p.command("work", "--", "sh", "-c", "echo $$; exec sleep 1000"))
	pid := w.pid()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command is gone", func() bool { return !alive(pid) })
}

func TestInputThatNobodyReadsIsFine(t *testing.T) {
	p := newPlace(t)
	big := filepath.Join(filepath.Dir(p.dir), "big")
	if err := os.WriteFile(big, make([]byte, 10<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(0, "put", "--file", big)
	p.run(0, "put", "--file", big)
	// The second leaves a process behind that holds the input and doesn't read it.
	p.run(0, "work", "--until-empty", "--", "sh", "-c", "test $LOCALQUEUE_ID = 1 || sleep 30 & exit 0")
	p.expect(1, queue.Acked, 1)
	p.expect(2, queue.Acked, 1)
}

func TestAFloodOnStderrTakesNoMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("needs /proc")
	}
	peak := func(bytes int) (kB int) {
		p := newPlace(t)
		p.put("x", "--max-retries", "0")
		script := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x >&2; echo >&2; printf '%%s' END >&2; grep VmHWM /proc/$PPID/status; exit 1", bytes)
		out, errs := p.run(0, "work", "--until-empty", "--", "sh", "-c", script)
		kB, err := strconv.Atoi(strings.Fields(out)[1])
		if err != nil {
			t.Fatal(err)
		}
		if len(errs) < bytes {
			t.Errorf("%d bytes of stderr came through, of %d", len(errs), bytes)
		}
		if text := p.show(1).LastError; len(text) > 8<<10 || !strings.HasPrefix(text, "exit status 1: ") || !strings.HasSuffix(text, "x\nEND") {
			t.Errorf("%d bytes of error: %.40q", len(text), text)
		}
		return kB
	}
	if calm, flood := peak(100), peak(20<<20); flood > calm+10<<10 {
		t.Errorf("%d kB with 20 MiB on stderr, %d kB without", flood, calm)
	}
}

func TestAStopAtAnyMomentLosesNothingAndUsesNoAttempt(t *testing.T) {
	rounds := 15
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		p := newPlace(t)
		q := p.queue()
		const jobs = 40
		for range jobs {
			if _, err := q.Put(t.Context(), []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		w := start(t, p.command("work", "--concurrency", "4", "--", "sh", "-c", "echo $LOCALQUEUE_ID"))
		seen := map[string]int{}
		for range 1 + round {
			seen[w.line()]++
		}
		w.signal(syscall.SIGTERM)
		w.exits(0)
		s, err := q.Stats(t.Context())
		if err != nil || s.Processing != 0 || s.Ready+s.Acked != jobs || s.Delayed+s.Failed != 0 || s.Acked < int64(round-4) {
			t.Fatalf("round %d: %+v %v", round, s, err)
		}
		for r, err := range q.All(t.Context(), queue.Ready) {
			if err != nil || r.Attempts != 0 {
				t.Errorf("round %d: job %d used %d attempts (%v)", round, r.ID, r.Attempts, err)
			}
		}
	}
}

func TestACommandThatOutlivesItsLeaseKeepsIt(t *testing.T) {
	p := newPlace(t)
	id := p.put("x")
	log := filepath.Join(filepath.Dir(p.dir), "log")
	args := []string{"work", "--lease", "300ms", "--until-drained", "--", "sh", "-c", "echo $LOCALQUEUE_DELIVERY >> " + log + "; exec sleep 1"}
	var all []*process
	for range 3 {
		all = append(all, start(t, p.command(args...)))
	}
	for _, w := range all {
		w.exits(0)
	}
	if b, err := os.ReadFile(log); err != nil || string(b) != "1\n" {
		t.Errorf("deliveries %q (%v)", b, err)
	}
	p.expect(id, queue.Acked, 1)
}

func TestACommandThatStopsBeingExecutable(t *testing.T) {
	p := newPlace(t)
	first, second := p.put("x"), p.put("y")
	script := filepath.Join(filepath.Dir(p.dir), "job.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec chmod -x "+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	w := start(t, p.command("work", "--", script))
	w.exits(1)
	if !strings.Contains(w.said(), "the command can't be run any more") {
		t.Error(w.said())
	}
	p.expect(first, queue.Acked, 1)
	p.expect(second, queue.Ready, 0)
}

func TestACommandThatIsBeingWrittenIsTriedAgain(t *testing.T) {
	p := newPlace(t)
	id := p.put("x")
	script := filepath.Join(filepath.Dir(p.dir), "job.sh")
	f, err := os.OpenFile(script, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("#!/bin/sh\nexit 0\n"); err != nil {
		t.Fatal(err)
	}
	w := start(t, p.command("work", "--until-drained", "--", script))
	eventually(t, "it waits", func() bool { return strings.Contains(w.said(), "can't be started now") })
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w.exits(0)
	p.expect(id, queue.Acked, 1)
}

func TestACancelledJobsCommandIsEnded(t *testing.T) {
	p := newPlace(t)
	id := p.put("x")
	w := start(t, p.command("work", "--until-empty", "--", "sh", "-c", "echo $$; exec sleep 1000"))
	pid := w.pid()
	p.run(0, "cancel", fmt.Sprint(id))
	w.exits(0)
	if alive(pid) || !strings.Contains(w.said(), "localqueue: job 1 was cancelled\n") {
		t.Errorf("alive: %v; %s", alive(pid), w.said())
	}
	p.expect(id, queue.Failed, 1)
}

func TestLinesOfConcurrentCommandsStayWhole(t *testing.T) {
	p := newPlace(t)
	q := p.queue()
	for range 16 {
		if _, err := q.Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	script := `for i in 1 2 3 4 5 6 7 8 9 10; do printf "<$LOCALQUEUE_ID"; printf "|$LOCALQUEUE_ID>\n"; done; printf "no end $LOCALQUEUE_ID"`
	out, _ := p.run(0, "work", "--concurrency", "4", "--until-empty", "--", "sh", "-c", script)
	whole, open := 0, 0
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if id, ok := strings.CutPrefix(line, "no end "); ok {
			open++
			if _, err := strconv.Atoi(id); err != nil {
				t.Errorf("mixed line %q", line)
			}
			continue
		}
		a, b, _ := strings.Cut(strings.Trim(line, "<>"), "|")
		if a != b {
			t.Errorf("mixed line %q", line)
		}
		whole++
	}
	if whole != 160 || open != 16 {
		t.Errorf("%d lines and %d without an end", whole, open)
	}
}

func TestWorkEndsWhenItsOutputIsGone(t *testing.T) {
	p := newPlace(t)
	q := p.queue()
	for range 500 {
		if _, err := q.Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	cmd := p.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "{ localqueue work --until-empty -- sh -c 'echo $LOCALQUEUE_ID'; echo $? >&3; } 3>&2 | head -n 1"}
	w := start(t, cmd)
	if got := w.line(); got != "1" {
		t.Errorf("first line %q", got)
	}
	w.exits(0)
	if said := w.said(); !strings.HasPrefix(said, "localqueue: stdout is gone: ") || !strings.HasSuffix(said, "\n1\n") || strings.Count(said, "\n") != 2 {
		t.Errorf("exit code and stderr: %q", said)
	}
	s, err := q.Stats(t.Context())
	if err != nil || s.Processing != 0 || s.Ready == 0 || s.Delayed+s.Failed != 0 {
		t.Errorf("%+v %v", s, err)
	}
}

func TestWorkEndsWhenItsDatabaseIsRemoved(t *testing.T) {
	p := newPlace(t)
	p.put("x")
	w := start(t, p.command("work", "--grace", "10ms", "--", "sh", "-c", "echo up"))
	w.line()
	eventually(t, "the directory is removed", func() bool { return os.RemoveAll(p.dir) == nil }) // the worker may be making a file in it
	w.exits(1)
	if said := w.said(); !strings.Contains(said, "localqueue: ") || !strings.Contains(said, "removed or replaced") {
		t.Errorf("stderr: %q", said)
	}
}

func TestAJobThatKillsItsWorkerEndsInTheDeadLetters(t *testing.T) {
	p := newPlace(t)
	id := p.put("x", "--max-retries", "2")
	starts := 0
	eventually(t, "the job has failed", func() bool {
		w := start(t, p.command("work", "--lease", "100ms", "--until-drained", "--", "sh", "-c", "kill -9 $PPID; sleep 1000"))
		<-w.ended
		if w.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			starts++
		}
		return p.show(id).State == queue.Failed
	})
	rec := p.show(id)
	if starts != 3 || rec.Reason != queue.LeaseExpired || rec.Attempts != 3 {
		t.Errorf("%d starts; %+v", starts, rec)
	}
}

func TestALongRunOfShortCommandsIsQuick(t *testing.T) {
	p := newPlace(t)
	q := p.queue()
	jobs := make([]queue.NewJob, 200)
	if _, err := q.PutMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	p.run(0, "work", "--concurrency", "2", "--until-empty", "--", "/bin/true")
	t.Logf("%v per job", time.Since(begun)/200)
	if s, err := q.Stats(t.Context()); err != nil || s.Acked != 200 {
		t.Errorf("%+v %v", s, err)
	}
}
