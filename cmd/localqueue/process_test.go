//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

func TestFiftyParallelPutsAreFiftyRows(t *testing.T) {
	p := newPlace(t)
	var failed int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if out, err := p.command("put", fmt.Sprint(i)).CombinedOutput(); err != nil {
				t.Errorf("%s", out)
				mu.Lock()
				failed++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	s, err := p.queue().Stats(t.Context())
	if err != nil || s.Ready != int64(50-failed) {
		t.Fatalf("%d jobs stored, %d puts failed (%v)", s.Ready, failed, err)
	}
}

func TestGetPrintsJSONThatParsesInEveryState(t *testing.T) {
	p := newPlace(t)
	p.put(`{"a":1}`)
	for _, want := range []int{0, 3} {
		out, errs := p.run(want, "get", "--json")
		for _, text := range []string{out, errs} {
			if text != "" && !json.Valid([]byte(text)) {
				t.Errorf("exit %d: %q", want, text)
			}
		}
		if (out == "") == (want == 0) {
			t.Errorf("exit %d: stdout %q", want, out)
		}
	}
}

func TestAPutThatIsKilledAndRepeatedIsOneJob(t *testing.T) {
	p := newPlace(t)
	p.run(0, "migrate", "up")
	const rounds = 40
	for i := range rounds {
		key := fmt.Sprintf("key-%d", i)
		cmd := p.command("put", "x", "--job-id", key)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Duration(i)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed or not is what the case is about
		kill.Stop()
		p.put("x", "--job-id", key)
	}
	s, err := p.queue().Stats(t.Context())
	if err != nil || s.Ready != rounds {
		t.Errorf("%d jobs after %d puts, each killed and repeated (%v)", s.Ready, rounds, err)
	}
}

func TestDelaysAndLeasesHoldAcrossTimeZones(t *testing.T) {
	zones := []string{"Asia/Kolkata", "America/New_York", "UTC"}
	for i := range zones {
		t.Run(zones[i], func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			run := func(zone string, args ...string) (doc struct {
				ID         int64     `json:"id"`
				LeaseUntil time.Time `json:"lease_until"`
				EnqueuedAt time.Time `json:"enqueued_at"`
			}) {
				cmd := p.command(append(args, "--json")...)
				cmd.Env = append(cmd.Env, "TZ="+zone)
				out, err := cmd.Output()
				if err == nil {
					err = json.Unmarshal(out, &doc)
				}
				if err != nil {
					t.Error(err)
				}
				return doc
			}
			a, b := zones[i], zones[(i+1)%len(zones)]
			id := run(a, "put", "x", "--delay", "1s").ID
			first := run(b, "get", "--wait", "20s", "--lease", "2s")
			delivered := p.show(id).ClaimedAt
			if waited := delivered.Sub(first.EnqueuedAt); waited < time.Second || waited > 1300*time.Millisecond {
				t.Errorf("put in %s with a delay of 1s, delivered in %s after %v", a, b, waited)
			}
			if lease := first.LeaseUntil.Sub(delivered); lease != 2*time.Second {
				t.Errorf("a lease of 2s was granted for %v", lease)
			}
			run(a, "get", "--wait", "20s")
			if again := p.show(id).ClaimedAt.Sub(delivered); again < 2*time.Second || again > 2300*time.Millisecond {
				t.Errorf("claimed in %s for 2s, delivered again in %s after %v", b, a, again)
			}
		})
	}
}

func TestAnInterruptEndsAWaitingGetAndAPutThatReads(t *testing.T) {
	p := newPlace(t)
	p.run(0, "migrate", "up")
	get := start(t, p.command("get", "--wait", "1h", "--json"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	reading := p.command("put", "--lines")
	reading.Stdin = r
	put := start(t, reading)
	if _, err := io.WriteString(w, "first\n"); err != nil {
		t.Fatal(err)
	}
	put.line() // it is stored, and put reads on
	put.signal(syscall.SIGINT)
	put.exits(1)
	if said := put.said(); said != "localqueue: interrupted; 1 jobs stored before\n" {
		t.Errorf("put said %q", said)
	}
	get.exits(0) // with the job
	waiting := start(t, p.command("get", "--wait", "1h"))
	eventually(t, "get waits", func() bool { return isOpen(waiting.cmd.Process.Pid) })
	waiting.signal(syscall.SIGTERM)
	waiting.exits(1)
	if said := waiting.said(); said != "localqueue: interrupted\n" {
		t.Errorf("get said %q", said)
	}
}

// isOpen reports whether a process has opened its queue; it has taken charge of its signals before.
func isOpen(pid int) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	files, err := os.ReadDir(dir)
	if err != nil {
		return true // not Linux: hope
	}
	for _, f := range files {
		if name, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && strings.HasSuffix(name, "/localqueue.db") {
			return true
		}
	}
	return false
}

func TestAnIgnoredHangupStaysIgnored(t *testing.T) {
	p := newPlace(t)
	p.run(0, "migrate", "up")
	cmd := p.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "trap '' HUP; exec localqueue get --wait 1m"}
	get := start(t, cmd)
	eventually(t, "get waits", func() bool { return isOpen(cmd.Process.Pid) })
	get.signal(syscall.SIGHUP)
	p.put("x")
	get.exits(0)
}

func TestADirectoryThatMayNotBeWritten(t *testing.T) {
	p := newPlace(t)
	p.put("x")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Dir(p.dir)
	program := filepath.Join(base, "localqueue")
	if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	for _, dir := range []string{filepath.Dir(base), base, program} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) int {
		cmd := p.command(args...)
		cmd.Path, cmd.Dir = program, "/"
		cmd.Err = nil
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		code := exitCode(t, cmd.Run())
		if !strings.Contains(errs.String(), `"code":"read_only"`) {
			t.Errorf("%v: %s", args, &errs)
		}
		return code
	}
	for _, mode := range []os.FileMode{0o555, 0o000} {
		if err := os.Chmod(p.dir, mode); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"stats"}, {"put", "y"}, {"get"}, {"list"}, {"work", "--until-empty", "--", "true"}} {
			if code := run(append([]string{"--json"}, args...)...); code != 1 {
				t.Errorf("%v in a directory with mode %o: exit code %d", args, mode, code)
			}
		}
	}
	if err := os.Chmod(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p.expect(1, queue.Ready, 0)
}

func TestACallThatWaitsForALockForTooLongIsBusy(t *testing.T) {
	p := newPlace(t)
	id := p.put("x")
	q := p.queue()
	locked, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := q.Store().Tx(context.Background(), func(*queue.Tx) error {
			close(locked)
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-locked
	for _, args := range [][]string{{"put", "y"}, {"get"}, {"get", "--wait", "20ms"}, {"cancel", fmt.Sprint(id)}, {"pause"}} {
		_, errs := p.run(5, append(args, "--busy-timeout", "50ms", "--json")...)
		if !strings.Contains(errs, `"code":"busy"`) {
			t.Errorf("%v: %s", args, errs)
		}
	}
	p.run(0, "stats") // looking takes no lock
	close(release)
	wg.Wait()
	p.expect(id, queue.Ready, 0)
}

func TestAReaderThatHasSeenEnoughIsNoFault(t *testing.T) {
	p := newPlace(t)
	id := p.put("x", "--header", "a=b")
	run := func(args ...string) string {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		defer func() { _ = w.Close() }()
		var errs bytes.Buffer
		cmd := p.command(args...)
		cmd.Stdout, cmd.Stderr = w, &errs
		if code := exitCode(t, cmd.Run()); code != 1 {
			t.Errorf("%v: exit code %d", args, code)
		}
		return errs.String()
	}
	for _, args := range [][]string{{"list"}, {"stats", "--json"}, {"show", "1"}} {
		if said := run(args...); said != "" {
			t.Errorf("%v complained: %s", args, said)
		}
	}
	// Where something was done, it is said.
	if said := run("get"); !strings.Contains(said, "the 1 jobs not printed were released") {
		t.Error(said)
	}
	p.expect(id, queue.Ready, 0)
	if said := run("put", "y"); !strings.Contains(said, "job 2 is stored, but its id could not be printed") {
		t.Error(said)
	}
}

func TestCheckSaysWhatIsWrongAndExitsWithOne(t *testing.T) {
	p := newPlace(t)
	p.put("x")
	err := p.queue().Store().Tx(t.Context(), func(tx *queue.Tx) error {
		_, err := tx.ExecContext(t.Context(), "UPDATE queues SET acked = 5")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	out, errs := p.run(1, "check")
	if !strings.Contains(out, "\ndefault  -   ") || !strings.HasPrefix(errs, "localqueue: 1 finding:") {
		t.Errorf("%s%s", out, errs)
	}
	out, errs = p.run(1, "check", "--quick", "--json")
	var doc checkDoc
	if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.Healthy || len(doc.Findings) != 1 || *doc.Findings[0].Queue != "default" {
		t.Errorf("%s (%v)", out, err)
	}
	if !strings.Contains(errs, `"code":"unhealthy","exit":1`) {
		t.Error(errs)
	}
}
