//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/queue"
)

// inProcess is a command line that runs here, on a directory of its own.
type inProcess struct {
	app
	stdout, stderr bytes.Buffer
}

func newInProcess(dir string) *inProcess {
	p := &inProcess{app: app{in: strings.NewReader("one\ntwo\n"), environ: os.Environ, lookPath: exec.LookPath, signals: newSignals()}}
	p.app.getenv = func(name string) string { return map[string]string{"LOCALQUEUE_DIR": dir}[name] }
	p.app.out, p.app.err = &p.stdout, &p.stderr
	return p
}

func TestNoGoroutineIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{
		{"put", "x"},
		{"put", "--lines"},
		{"put", "--max-pending", "1", "--wait", "10ms", "y"},
		{"get", "--json"},
		{"get", "--queue", "empty", "--wait", "10ms"},
		{"stats"},
		{"list"},
		{"work", "--until-empty", "--", "sh", "-c", "exit 1"},
		{"check"},
		{"doctor"},
		{"nonsense"},
	} {
		p := newInProcess(dir)
		if code := run(t.Context(), &p.app, args); code != 0 && p.stderr.Len() == 0 {
			t.Errorf("%v: exit code %d without a word", args, code)
		}
	}
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, terminal := range []bool{false, true} {
		p := newInProcess(dir)
		p.errTerminal = terminal
		if code := run(t.Context(), &p.app, []string{"put", "--lines"}); code != 0 {
			t.Fatal(code, p.stderr.String())
		}
		if shown := strings.Contains(p.stderr.String(), "putting"); shown != terminal {
			t.Errorf("terminal %v: stderr %q", terminal, p.stderr.String())
		}
		if strings.Count(p.stdout.String(), "\n") != 2 {
			t.Errorf("stdout %q", p.stdout.String())
		}
	}
	p := newInProcess(dir)
	p.errTerminal = true
	if code := run(t.Context(), &p.app, []string{"purge", "--older-than", "0s"}); code != 0 {
		t.Fatal(code, p.stderr.String())
	}
}

func TestLinesAreStoredAsTheyComeAndFlushedAfterAMoment(t *testing.T) {
	p := newInProcess(filepath.Join(t.TempDir(), "data"))
	in, feed := io.Pipe()
	out, ids := io.Pipe()
	p.in, p.out = in, ids
	done := make(chan int)
	go func() {
		code := run(t.Context(), &p.app, []string{"put", "--lines"})
		_ = ids.Close()
		done <- code
	}()
	for i := 1; i <= 3; i++ { // each is stored while the input stays open
		if _, err := io.WriteString(feed, "x\n"); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 16)
		n, err := out.Read(b)
		if got := string(b[:n]); err != nil || got != fmt.Sprintf("%d\n", i) {
			t.Fatalf("id %q of line %d (%v)", got, i, err)
		}
	}
	_ = feed.Close()
	if code := <-done; code != 0 {
		t.Error(code, p.stderr.String())
	}
}

func TestAPutWaitsForRoomNoLongerThanAsked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := newInProcess(dir)
	if code := run(t.Context(), &p.app, []string{"put", "x", "--max-pending", "1"}); code != 0 {
		t.Fatal(p.stderr.String())
	}
	store, err := queue.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	done := make(chan int)
	go func() { done <- run(t.Context(), &p.app, []string{"put", "y", "--max-pending", "1", "--wait", "1h"}) }()
	if job, err := store.Default().Get(t.Context()); err != nil {
		t.Fatal(err)
	} else if err := job.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != 0 {
		t.Error(p.stderr.String())
	}
}

func TestEveryKindOfErrorHasItsExitCodeAndName(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range errorClasses {
		err := onJob(fmt.Errorf("op on queue: %w: details", c.is), "q", 7)
		exit, code := classify(err)
		if exit != c.exit || code != c.code || exit < 1 || exit > 7 {
			t.Errorf("%v: exit %d, code %q", c.is, exit, code)
		}
		if seen[code] && code != "usage" {
			t.Errorf("the code %q is used twice", code)
		}
		seen[code] = true
		if doc := newErrorDoc(err); doc.ID != 7 || doc.Queue != "q" {
			t.Errorf("%+v", doc)
		}
	}
	for _, both := range []struct {
		err  error
		code string
	}{
		{fmt.Errorf("%w: %w", queue.ErrBusy, context.DeadlineExceeded), "busy"},
		{fmt.Errorf("%w: %w", queue.ErrOutcomeUnknown, context.Canceled), "outcome_unknown"},
		{&queue.LeaseLostError{Cause: queue.LossNoSuchJob}, "lease_lost"},
		{failf(queue.ErrFull, "x"), "full"},
		{errors.New("else"), "error"},
	} {
		if _, code := classify(both.err); code != both.code {
			t.Errorf("%v is %q, want %q", both.err, code, both.code)
		}
	}
}

func TestAnErrorIsOneLineWhateverIsInIt(t *testing.T) {
	var out bytes.Buffer
	printError(&out, false, errors.New("two\nlines \x1b[31m"))
	if diff := cmp.Diff("localqueue: two\\nlines \\x1b[31m\n", out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestCommandErrorsFitWhatTheQueueKeeps(t *testing.T) {
	for _, tail := range []string{"", "x", strings.Repeat("ä", 8<<10), strings.Repeat("\xff", 8<<10), " \n\t", "\x80" + strings.Repeat("漢", 3000)} {
		text := newCommandError(1, "exit status 1", []byte(tail)).Error()
		if len(text) > errorTail || !utf8.ValidString(text) || !strings.HasPrefix(text, "exit status 1") {
			t.Errorf("%d bytes of error from %d of stderr: %.30q", len(text), len(tail), text)
		}
	}
}

func FuzzPayloadDocsAreByteExact(f *testing.F) {
	for _, s := range []string{"", "x", `{"a":1970670598291982290}`, "[NaN]", "\xff\xfe", `"\ud800"`, " 1 ", "<script>\u2028", "\x00\x1b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		b, err := marshal(newPayloadDoc(in))
		if err != nil {
			t.Fatal(err)
		}
		var doc payloadDoc
		if err := json.Unmarshal(b, &doc); err != nil || bytes.Count(b, []byte("\n")) != 1 {
			t.Fatalf("%q: %v", b, err)
		}
		var got []byte
		switch {
		case doc.Text != nil && doc.Base64 == nil:
			got = []byte(*doc.Text)
		case doc.Base64 != nil && doc.Text == nil:
			if got, err = base64.StdEncoding.DecodeString(*doc.Base64); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, in) {
			t.Fatalf("%q became %q", in, got)
		}
		if strict := utf8.Valid(in) && json.Valid(in); strict != (doc.Payload != nil) {
			t.Fatalf("%q: payload %q", in, doc.Payload)
		}
	})
}

// FuzzArguments runs whatever command line: it must neither panic nor hang, must exit with a code of the list and say why,
// and must touch nothing outside its directory.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		"put x", "put", "put --lines --skip-empty", "put --file in --base64", "put --job-id k --delay 1s --header a=b x", "put --max-pending 1 --wait 1h x",
		"get --count 3 --json", "get --wait 1h", "ack 1 --receipt 1-0", "nack 1 --receipt x --error e", "fail 1 --receipt x", "release 1 --receipt x",
		"extend 1 --receipt x --for 1s", "work --until-empty -- sh -c x", "stats --queue q", "queues --json", "list --state failed --limit 2 --after failed:x",
		"show 1", "show --job-id k --json", "peek", "retry --all --dry-run", "retry 1", "run 1", "delete --state ready", "cancel 1", "pause", "resume",
		"reclaim", "purge --older-than 0s --include-failed", "set --keep-acked forever", "vacuum", "check --quick", "doctor --json", "migrate up", "migrate status",
		"completion bash", "version --json", "help put", "--dir other put x", "--dir :memory: stats", "--busy-timeout 1s --durability full stats",
		"__complete list --state ", "--json --help", "put --json --json=false -- --", "-", "--",
	} {
		f.Add(strings.ReplaceAll(s, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		// Names without a slash stay in the working directory.
		args := strings.Split(strings.NewReplacer("/", "_", "..", "__").Replace(line), "\n")
		outside := t.TempDir()
		inside := filepath.Join(outside, "inside")
		if err := os.Mkdir(inside, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Chdir(inside)
		p := newInProcess("data")
		p.lookPath = func(string) (string, error) { return "", exec.ErrNotFound }
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		code := run(ctx, &p.app, args)
		if code < 0 || code > 7 {
			t.Errorf("%q: exit code %d", args, code)
		}
		if last := p.stderr.String(); code != 0 && !strings.Contains(last, "localqueue: ") && !json.Valid([]byte(last)) {
			t.Errorf("%q: exit code %d, stderr %q", args, code, last)
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
			t.Errorf("%q: outside are now %v (%v)", args, left, err)
		}
	})
}
