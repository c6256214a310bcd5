//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Faults that users of such systems have reported, as far as they are met on the command line: see docs/cases.md.
// LOCALQUEUE_CASES=full runs them at the size in which they were reported.

func sized(small, full int) int {
	if os.Getenv("LOCALQUEUE_CASES") == "full" {
		return full
	}
	return small
}

// holdLock takes the write lock, as another program's long transaction does.
func holdLock(t *testing.T, q *queue.Queue) (release func()) {
	t.Helper()
	locked, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- q.Store().Tx(context.Background(), func(*queue.Tx) error {
			close(locked)
			<-done
			return nil
		})
	}()
	<-locked
	return sync.OnceFunc(func() {
		close(done)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func count(t *testing.T, q *queue.Queue) queue.Stats {
	t.Helper()
	s, err := q.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCase01_WorkOutlivesALockThatIsHeldForLongerThanItsBusyTimeout(t *testing.T) {
	p := newPlace(t)
	const jobs = 12
	for i := range jobs {
		p.put(strconv.Itoa(i))
	}
	q := p.queue()
	w := start(t, p.command("work", "--busy-timeout", "50ms", "--concurrency", "2", "--until-empty", "--", "sh", "-c", "cat; echo"))
	seen := []string{w.line()}
	release := holdLock(t, q)
	eventually(t, "work says that the file is busy", func() bool { return strings.Contains(w.said(), "busy") })
	release()
	for range jobs - 1 {
		seen = append(seen, w.line())
	}
	w.exits(0)
	slices.Sort(seen)
	if len(slices.Compact(seen)) != jobs {
		t.Errorf("ran %v", seen)
	}
	if s := count(t, q); s.Acked != jobs {
		t.Errorf("%+v", s)
	}
	if lines := strings.Count(w.said(), "\n"); lines > 10 {
		t.Errorf("%d lines of log", lines)
	}
}

func TestCase07_GetPrintsJSONThatParsesInEveryState(t *testing.T) {
	p := newPlace(t)
	get := func(want, docs int, args ...string) {
		t.Helper()
		out, errs := p.run(want, append([]string{"get", "--json"}, args...)...)
		for what, text := range map[string]string{"stdout": out, "stderr": errs} {
			n, dec := 0, json.NewDecoder(strings.NewReader(text))
			for dec.More() {
				var doc map[string]any
				if err := dec.Decode(&doc); err != nil {
					t.Fatalf("%s of exit %d: %v in %q", what, want, err, text)
				}
				n++
			}
			if what == "stdout" && n != docs {
				t.Errorf("exit %d: %d documents, want %d: %q", want, n, docs, text)
			}
		}
	}
	get(3, 0) // there is no directory yet
	get(3, 0, "--wait", "10ms")
	p.put("later", "--delay", "1h")
	get(3, 0)
	for i, payload := range []string{`{"a":1}`, "text", "", "\x1b[2J", "[NaN]", `"\ud800"`, "1970670598291982290", "\n"} {
		p.put(payload, "--header", "h=\"\n", "--job-id", "k"+strconv.Itoa(i))
	}
	binary := filepath.Join(filepath.Dir(p.dir), "binary")
	if err := os.WriteFile(binary, []byte("\x00\xff\xfe"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(0, "put", "--file", binary)
	p.run(0, "pause")
	get(3, 0)
	p.run(0, "resume")
	get(0, 1)
	get(0, 8, "--count", "100")
	get(3, 0, "--count", "5") // all are leased or delayed
	p.run(0, "cancel", "2")
	get(3, 0) // and one has failed
	release := holdLock(t, p.queue())
	defer release()
	p.run(0, "stats")
	get(3, 0, "--busy-timeout", "50ms") // nothing to claim needs no lock
}

// A handler that takes longer than its lease, receivers that poll, and a program that writes for a while, though not for as
// long as the lease: a lease ends by the clock, also while nobody can write.
func TestCase09_ACommandLongerThanItsLeaseRunsOnceBesideALongTransaction(t *testing.T) {
	p := newPlace(t)
	id := p.put("x")
	q := p.queue()
	lease := time.Duration(sized(2000, 6000)) * time.Millisecond
	script := fmt.Sprintf("echo $LOCALQUEUE_DELIVERY; exec sleep %.1f", 1.5*lease.Seconds())
	outputs := make(chan string, 5)
	var all []*process
	for range cap(outputs) {
		w := start(t, p.command("work", "--lease", lease.String(), "--until-drained", "--", "sh", "-c", script))
		all = append(all, w)
		go func() {
			text, _ := io.ReadAll(w.stdout)
			outputs <- string(text)
		}()
	}
	eventually(t, "the job is claimed", func() bool { return count(t, q).Processing == 1 })
	release := holdLock(t, q)
	time.Sleep(lease / 3) // it writes
	release()
	ran := ""
	for _, w := range all {
		w.exits(0)
		ran += <-outputs
	}
	if ran != "1\n" {
		t.Errorf("deliveries %q", ran)
	}
	p.expect(id, queue.Acked, 1)
}

func TestCase10_AnEndedLeaseIsShownAndTheNextLookAtTheQueueEndsIt(t *testing.T) {
	for _, act := range [][]string{{"get"}, {"reclaim"}, {"work", "--until-empty", "--", "true"}} {
		p := newPlace(t)
		id := p.put("x", "--max-retries", "0")
		p.run(0, "get", "--lease", "50ms")
		eventually(t, "stats shows the lease as ended", func() bool {
			out, _ := p.run(0, "stats", "--json")
			return strings.Contains(out, `"processing":1,"expired":1`)
		})
		p.expect(id, queue.Leased, 1) // looking has changed nothing
		want := 0
		if act[0] == "get" {
			want = exitEmpty
		}
		p.run(want, act...)
		if rec := p.show(id); rec.State != queue.Failed || rec.Reason != queue.LeaseExpired || rec.Attempts != 1 {
			t.Errorf("after %s: %+v", act[0], rec)
		}
	}
}

// SIGTERM while eight handlers are at random stages.
func TestCase12_ATermAtAnyMomentLosesNoAckAndUsesNoAttempt(t *testing.T) {
	rounds := sized(5, 100)
	for round := range rounds {
		p := newPlace(t)
		q := p.queue()
		jobs := make([]queue.NewJob, 40)
		for i := range jobs {
			jobs[i].Payload = []byte(strconv.FormatFloat(rand.Float64()/10, 'f', 4, 64))
		}
		if _, err := q.PutMany(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		// A command that is asked to end either does so without a result, or finishes.
		done := filepath.Join(filepath.Dir(p.dir), "done")
		script := `n=$(cat); trap 'test $((LOCALQUEUE_ID % 2)) = 0 && exit 1' TERM; echo up; sleep $n & wait; wait; trap "" TERM; echo $LOCALQUEUE_ID >> ` + done
		w := start(t, p.command("work", "--concurrency", "8", "--", "sh", "-c", script))
		for range 8 + rand.IntN(20) {
			w.line()
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond) // a random stage
		w.signal(syscall.SIGTERM)
		w.exits(0)
		finished := map[int64]int{}
		text, err := os.ReadFile(done)
		if err != nil {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(string(text)) {
			id, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			finished[id]++
		}
		s := count(t, q)
		if s.Processing != 0 || s.Failed != 0 || s.Delayed != 0 || s.Acked != int64(len(finished)) || s.Ready != int64(len(jobs)-len(finished)) {
			t.Fatalf("round %d: %+v; %d finished", round, s, len(finished))
		}
		for id, n := range finished {
			if rec := p.show(id); n != 1 || rec.State != queue.Acked || rec.Attempts != 1 {
				t.Errorf("round %d: job %d finished %d times: %+v", round, id, n, rec)
			}
		}
		left, err := q.TryGetMany(t.Context(), len(jobs))
		if err != nil || len(left) != int(s.Ready) {
			t.Fatalf("round %d: %d claimable at once of %d (%v)", round, len(left), s.Ready, err)
		}
		for _, j := range left {
			if j.Attempt != 1 {
				t.Errorf("round %d: job %d used an attempt", round, j.ID)
			}
		}
	}
}

func TestCase15_APutThatIsKilledAtAnyMomentAndRepeatedIsOneJob(t *testing.T) {
	p := newPlace(t)
	p.run(0, "migrate", "up")
	q := p.queue()
	within := 20 * time.Millisecond // longer where it takes longer to start a process
	rounds := sized(40, 300)
	killed, unseen := 0, 0 // unseen: killed, and stored all the same
	for i := range rounds {
		key := fmt.Sprint("key-", i)
		cmd := p.command("put", "x", "--job-id", key)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(rand.N(within), func() { _ = cmd.Process.Kill() })
		switch err := cmd.Wait(); {
		case err == nil: // too late
			within -= within / 10
		case count(t, q).Ready > int64(i):
			killed++
			unseen++
		default: // before it was stored
			killed++
			within += within / 10
		}
		kill.Stop()
		p.put("x", "--job-id", key)
		if s := count(t, q); s.Ready != int64(i+1) {
			t.Fatalf("%d jobs after %d puts, each killed and repeated", s.Ready, i+1)
		}
	}
	t.Logf("%d of %d puts were killed; %d of these had stored the job", killed, rounds, unseen)
}

// The WAL can't start anew in the middle of a reader's snapshot: list reads in short ones.
func TestCase18_TheWALStaysBoundedWhileListRuns(t *testing.T) {
	p := newPlace(t)
	store, err := queue.Open(p.dir, queue.WithDurability(queue.Normal))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	q := store.Default()
	backlog := make([]queue.NewJob, 2000)
	for i := range backlog {
		backlog[i] = queue.NewJob{Payload: bytes.Repeat([]byte("x"), 500), Options: []queue.PutOption{queue.Priority(-1)}}
	}
	if _, err := q.PutMany(t.Context(), backlog); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	listed := make(chan struct{}, 1<<20)
	for _, args := range [][]string{{"list", "--limit", "1000", "--json"}, {"list", "--state", "acked"}, {"export"}} {
		readers.Go(func() {
			for ctx.Err() == nil {
				cmd := p.command(args...)
				if out, err := cmd.Output(); err != nil || len(out) == 0 {
					t.Errorf("%v: %v", args, err)
				}
				listed <- struct{}{}
			}
		})
	}
	size := func() int64 {
		st, err := os.Stat(filepath.Join(p.dir, "localqueue.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	most := int64(0)
	put := func(n int) {
		t.Helper()
		for i := range n {
			if _, err := q.Put(t.Context(), []byte("payload")); err != nil {
				t.Fatal(err)
			}
			j, err := q.TryGet(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
			if i%50 == 0 {
				most = max(most, size())
			}
		}
	}
	put(sized(4000, 200_000))
	for len(listed) < 6 { // however slow they are
		put(50)
	}
	stop()
	readers.Wait()
	if most > 64<<20 {
		t.Errorf("the WAL had %d MB beside %d lists", most>>20, len(listed))
	}
	put(2000)
	if now := size(); now > 16<<20 {
		t.Errorf("the WAL has %d MB although nobody reads any more", now>>20)
	}
}
