//go:build unix

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

// diagnosis runs doctor here, and returns what it prints with --json and to a terminal.
func diagnosis(t *testing.T, dir string) (doc doctorDoc, screen string) {
	t.Helper()
	for _, args := range [][]string{{"doctor", "--json"}, {"doctor"}} {
		p := newInProcess(dir)
		p.outTerminal = len(args) == 1
		code := run(t.Context(), &p.app, args)
		screen = p.stdout.String()
		if len(args) == 2 {
			if err := json.Unmarshal(p.stdout.Bytes(), &doc); err != nil {
				t.Fatalf("%v: %s %s", err, &p.stdout, &p.stderr)
			}
		}
		if healthy := code == 0; doc.Healthy != healthy || code > 1 {
			t.Errorf("%v: exit code %d, healthy %v", args, code, doc.Healthy)
		}
	}
	return doc, screen
}

func found(doc doctorDoc) (all []string) {
	for _, f := range doc.Findings {
		all = append(all, string(f.Severity)+" "+string(f.Code))
	}
	return all
}

func TestDoctorTellsOfAWorkerThatIsStopped(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	p := newPlace(t)
	p.put("x")
	w := start(t, p.command("work", "--", "sh", "-c", "echo runs; exec sleep 600"))
	w.line()
	w.signal(syscall.SIGSTOP)
	t.Cleanup(func() { w.signal(syscall.SIGCONT) })
	pid := w.cmd.Process.Pid
	eventually(t, "it is stopped", func() bool { doc, _ := diagnosis(t, p.dir); return slices.Contains(found(doc), "note stopped_process") })
	doc, screen := diagnosis(t, p.dir)
	if diff := cmp.Diff([]openerDoc{{PID: pid, Stores: 1, Stopped: true}}, doc.Openers); diff != "" {
		t.Errorf("open in (-want +got):\n%s", diff)
	}
	for _, want := range []string{fmt.Sprintf("process %d (stopped)\n", pid), fmt.Sprintf("kill -CONT %d", pid)} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q on the screen:\n%s", want, screen)
		}
	}
}

func TestDoctorFailsWhileARestoreKeepsTheQueueClosed(t *testing.T) {
	p := newPlace(t)
	p.put("x")
	backup := filepath.Join(t.TempDir(), "backup")
	p.run(0, "backup", backup)
	var looks int
	look := func(done, total int) {
		if looks++; looks > 1 {
			return
		}
		p.run(5, "put", "y", "--busy-timeout", "20ms")
		out, _ := p.run(1, "doctor", "--busy-timeout", "20ms", "--json")
		if !strings.Contains(out, `"healthy":false`) || !strings.Contains(out, `"restoring":true`) || !strings.Contains(out, `"code":"restoring"`) {
			t.Errorf("it says %s", out)
		}
	}
	if _, err := queue.Restore(t.Context(), backup, p.dir, queue.RestoreOptions{Replace: true, Progress: look}); err != nil || looks == 0 {
		t.Fatal(err, looks)
	}
	p.run(0, "doctor")
}

// otherProgram runs statements on the file.
func otherProgram(t *testing.T, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "localqueue.db")+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%v in %s", err, s)
		}
	}
}

func TestCase10_DoctorShowsAnExpiredDeliveryAndChangesNothing(t *testing.T) {
	p := newPlace(t)
	p.put("x", "--max-retries", "0")
	p.run(0, "get", "--lease", "1ms")
	eventually(t, "the lease ends", func() bool { return count(t, p.queue()).Expired == 1 })
	before, _ := p.run(0, "show", "1", "--json")
	for range 3 {
		doc, screen := diagnosis(t, p.dir)
		if diff := cmp.Diff([]string{"note expired_leases"}, found(doc)); diff != "" {
			t.Errorf("findings (-want +got):\n%s", diff)
		}
		if q := doc.Queues[0]; q.Processing != 1 || q.Expired != 1 || !strings.Contains(screen, "1 expired delivery is to be picked up") {
			t.Errorf("%+v\n%s", q, screen)
		}
	}
	if after, _ := p.run(0, "show", "1", "--json"); after != before {
		t.Errorf("doctor has changed the job: %s, before %s", after, before)
	}
	p.run(0, "reclaim")
	if r, _, err := p.queue().Show(t.Context(), 1); err != nil || r.Reason != queue.LeaseExpired {
		t.Errorf("after a reclaim: %+v, %v", r, err)
	}
}

func TestCase19_DoctorSaysWhenAckedJobsHaveGrown(t *testing.T) {
	p := newPlace(t)
	p.put("x")
	otherProgram(t, p.dir, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
		INSERT INTO messages (queue, payload, status, attempts, delivery, max_attempts, available_at, created_at, updated_at) SELECT 'default', x'01', 2, 1, 1, 4, 1000, 1000, 1000 FROM n`)
	doc, screen := diagnosis(t, p.dir)
	if diff := cmp.Diff([]string{"note acked_grown"}, found(doc)); diff != "" || !strings.Contains(screen, "100000 acked jobs are kept") {
		t.Errorf("findings (-want +got):\n%s%s", diff, screen)
	}
	p.run(0, "set", "--keep-acked", "1h") // nobody applies it
	if doc, _ = diagnosis(t, p.dir); !cmp.Equal([]string{"note retention_late"}, found(doc)) {
		t.Errorf("with a retention: %v", found(doc))
	}
	if _, err := p.queue().ApplyRetention(context.Background()); err != nil {
		t.Fatal(err)
	}
	if doc, _ = diagnosis(t, p.dir); len(doc.Findings) > 0 {
		t.Errorf("after it: %v", found(doc))
	}
}

func TestCase23_DoctorAndCheckShowWhatOthersWroteSafely(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new\nline\x1b[2J")
	p := newInProcess(dir)
	if code := run(t.Context(), &p.app, []string{"put", "x"}); code != 0 {
		t.Fatal(p.stderr.String())
	}
	otherProgram(t, dir, `UPDATE messages SET queue = 'evil' || char(27) || '[31m' || char(10) || char(8238)`, // the counters don't follow
		`INSERT INTO queues (name, paused) VALUES ('evil' || char(27) || '[31m' || char(10) || char(8238), 1)`)
	_, screen := diagnosis(t, dir)
	if r := unsafeIn(screen); r != 0 || !strings.Contains(screen, `evil\x1b[31m\n\u202e`) {
		t.Errorf("doctor prints %q to a terminal:\n%s", r, screen)
	}
	c := newInProcess(dir)
	c.outTerminal = true
	code := run(t.Context(), &c.app, []string{"check"})
	if r := unsafeIn(c.stdout.String() + c.stderr.String()); r != 0 || code != 1 || !strings.Contains(c.stdout.String(), "the counters say 1 ready, the rows are 0") {
		t.Errorf("check exits with %d and prints %q to a terminal:\n%s%s", code, r, &c.stdout, &c.stderr)
	}
}
