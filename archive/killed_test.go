package archive_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

const importRole = "import"

// playImport is a process that imports stdin into the directory of its first argument, and says so at each batch.
func playImport() {
	err := func() error {
		s, err := queue.Open(os.Args[1], queue.WithDurability(queue.Normal))
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		_, err = archive.Import(context.Background(), s, os.Stdin, archive.ImportOptions{Progress: func(r archive.ImportResult) { fmt.Println(r.Lines) }})
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// importUntil runs an import in a process of its own, and kills that when it has told of so many batches. It says whether
// the import came to its end.
func importUntil(t *testing.T, dir, file string, batches int, env ...string) (done bool) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir)
	cmd.Env = append(os.Environ(), roleEnv+"="+importRole, "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin, cmd.Stderr = in, os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if told++; told == batches {
			_ = cmd.Process.Kill()
		}
	}
	err = cmd.Wait()
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && (!ok || st.Signal() != syscall.SIGKILL) {
		t.Fatalf("the import failed: %v", err)
	}
	return err == nil
}

// The jobs have no keys: nothing but the mark keeps a repeat from storing them again.
func TestAKilledImportGoesOnWithoutADoubleOrAGap(t *testing.T) {
	const jobs = 2500
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	if _, err := archive.ExportFile(t.Context(), numbered(t, jobs), file, archive.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	want := numbers(jobs)
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprintf("into a used directory %v", used), func(t *testing.T) {
			dir := t.TempDir()
			to := queuetest.OpenDir(t, dir, queue.WithDurability(queue.Normal)) // another process, all the while
			first := 0
			if used {
				put(t, to.Default(), "here before")
				first = 1
			}
			kills := 0
			for !importUntil(t, dir, file, 3+rand.IntN(5)) {
				if kills++; kills > jobs {
					t.Fatal("it doesn't get on")
				}
				got := payloads(t, to)[first:]
				if diff := cmp.Diff(want[:min(len(got), jobs)], got); diff != "" {
					t.Fatalf("after %d kills (-want +got):\n%.2000s", kills, diff)
				}
			}
			if diff := cmp.Diff(want, payloads(t, to)[first:]); diff != "" || kills == 0 {
				t.Errorf("at the end, after %d kills (-want +got):\n%.2000s", kills, diff)
			}
			sound(t, to)
		})
	}
}
