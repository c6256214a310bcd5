//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

func TestAnInterruptedImportKeepsWhatItHasRead(t *testing.T) {
	p := newPlace(t)
	cmd := p.command("import", "--name", "x")
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	// Many jobs and a half: the process is in the middle of them when the first of them are in, and then waits for the rest.
	if _, err := io.WriteString(in, strings.Repeat(`{"text":"a"}`+"\n", 400)+`{"text":`); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for ; ; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no job comes in")
		}
		store, err := queue.Open(p.dir, queue.MustExist())
		if err != nil {
			continue // it isn't made yet
		}
		st, err := store.Default().Stats(context.Background())
		if closing := store.Close(); closing != nil {
			t.Fatal(closing)
		}
		if err == nil && st.Ready > 0 {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != exitError || !strings.Contains(said.String(), "interrupted; ") {
		t.Errorf("exit code %d: %s", code, &said)
	}
	jobs := strings.Repeat(`{"text":"a"}`+"\n", 401)
	again := p.command("import", "--name", "x")
	again.Stdin = strings.NewReader(jobs)
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if st, err := p.queue().Stats(context.Background()); err != nil || st.Ready != 401 {
		t.Errorf("%+v, %v", st, err)
	}
}
