//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/localqueue/localqueue/queue"
)

// raceOptions keeps each process that the race detector watches from sleeping for a second at its end.
const raceOptions = "atexit_sleep_ms=10"

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", raceOptions) // it only saves time
	}
	if filepath.Base(os.Args[0]) != "localqueue" {
		heedSignals()
	}
	// The scripts and the tests that start processes run this program: it is on their PATH as localqueue.
	testscript.Main(m, map[string]func(){"localqueue": main})
}

// heedSignals undoes what a job in the background or nohup has made the tests inherit: what is ignored here would be ignored
// by every process they start and send signals to. Handled ones aren't inherited.
func heedSignals() {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("LOCALQUEUE_DIR", "")
			env.Setenv("LOCALQUEUE_QUEUE", "")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": cmdExits, "json": cmdJSON, "same": cmdSame, "bytes": cmdBytes,
			"unpack": cmdUnpack, "sqlite": cmdSQLite, "locked": cmdLocked},
		RequireUniqueNames: true,
	})
}

// cmdExits runs a command and checks its exit code. A failing localqueue has to say why in one line on stderr (with
// --json in one document with the same exit code), print nothing to stdout, and leave the jobs in ./data as they were.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	before := dump(ts.MkAbs("data"))
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
	if code == 0 || args[1] != "localqueue" {
		return
	}
	if out := ts.ReadFile("stdout"); out != "" && !slices.Contains(args, "check") && !slices.Contains(args, "doctor") {
		ts.Fatalf("a failure printed %q to stdout", out)
	}
	said := ts.ReadFile("stderr")
	if asksJSON(args) {
		var doc errorDoc
		dec := json.NewDecoder(strings.NewReader(said))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&doc); err != nil || dec.More() || doc.Exit != code || doc.Error == "" || doc.Code == "" {
			ts.Fatalf("not one error document of exit %d: %q (%v)", code, said, err)
		}
	} else if !strings.HasPrefix(said, "localqueue: ") || strings.Count(said, "\n") != 1 || !strings.HasSuffix(said, "\n") {
		ts.Fatalf("not one line of error: %q", said)
	}
	made := before == "no queue" && code == exitEmpty // get makes the directory
	if after := dump(ts.MkAbs("data")); after != before && !made {
		ts.Fatalf("the failure changed something (-before +after):\n%s", cmp.Diff(before, after))
	}
}

// dump is all that is stored in a directory.
func dump(dir string) string {
	store, err := queue.Open(dir, queue.MustExist())
	if errors.Is(err, queue.ErrNoQueue) {
		return "no queue"
	} else if err != nil {
		return "unreadable" // what the case at hand is about
	}
	defer func() { _ = store.Close() }()
	var text strings.Builder
	all, err := store.Queues(context.Background())
	fmt.Fprintln(&text, err)
	for _, s := range all {
		fmt.Fprintln(&text, s.Queue, s.Paused, s.KeepAcked)
		q, err := store.Queue(s.Queue)
		fmt.Fprintln(&text, err)
		for _, state := range states {
			for r, err := range q.All(context.Background(), state) {
				sum := sha256.Sum256(r.Payload)
				r.Payload = sum[:]
				fmt.Fprintf(&text, "%+v %v\n", r, err)
			}
		}
	}
	return text.String()
}

// cmdJSON takes a field (a.b.c) of the last document on stdout into a variable of the script. Missing is "none".
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: json VARIABLE FIELD")
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n")
	dec := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	dec.UseNumber()
	var value any
	ts.Check(dec.Decode(&value))
	for name := range strings.SplitSeq(args[1], ".") {
		object, _ := value.(map[string]any)
		var ok bool
		if value, ok = object[name]; !ok {
			value = "none"
		}
	}
	if s, ok := value.(string); ok {
		ts.Setenv(args[0], s)
		return
	}
	b, err := json.Marshal(value)
	ts.Check(err)
	ts.Setenv(args[0], string(b))
}

// cmdSame compares two texts: same $A 'b'.
func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same A B")
	}
	if (args[0] == args[1]) == neg {
		ts.Fatalf("%q and %q", args[0], args[1])
	}
}

// cmdBytes writes a file of a Go string literal's bytes, or of N times a byte: bytes FILE '"\xff"', bytes FILE 1000 x.
func cmdBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: bytes FILE LITERAL | bytes FILE N BYTE")
	}
	var text string
	if len(args) == 3 {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		text = strings.Repeat(args[2], n)
	} else {
		var err error
		text, err = strconv.Unquote(args[1])
		ts.Check(err)
	}
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
	ts.Check(os.WriteFile(path, []byte(text), 0o600))
}
