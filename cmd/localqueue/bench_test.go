//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startBench starts a long benchmark and waits until its processes are at work.
func startBench(t *testing.T, dir string, said *bytes.Buffer) (cmd *exec.Cmd, processes []int) {
	t.Helper()
	cmd = exec.Command("localqueue", "bench", "--scenario", "contention", "--processes", "3", "--duration", "10m", "--dir", dir)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	await(t, "the processes at work", func() bool {
		processes = childrenOf(cmd.Process.Pid)
		journals, _ := filepath.Glob(filepath.Join(dir, "*", "*", "journal-*"))
		return len(processes) == 3 && len(journals) == 3
	})
	return cmd, processes
}

// await looks until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func childrenOf(pid int) (children []int) {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, path := range tasks {
		b, _ := os.ReadFile(path) // a thread may have ended
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				children = append(children, n)
			}
		}
	}
	return children
}

func gone(processes []int) bool {
	for _, pid := range processes {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && strings.Contains(string(b), "child") {
			return false
		}
	}
	return true
}

func TestAnInterruptedBenchmarkLeavesNothingBehind(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		dir := t.TempDir()
		var said bytes.Buffer
		cmd, processes := startBench(t, dir, &said)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the exit code is looked at below
		if code := cmd.ProcessState.ExitCode(); code != exitError || !strings.Contains(said.String(), "interrupted") {
			t.Errorf("%v: exit code %d, and %q", sig, code, &said)
		}
		if !gone(processes) {
			t.Errorf("%v: processes are left", sig)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v: left behind: %v (%v)", sig, left, err)
		}
	}
}

func TestTheProcessesOfAKilledBenchmarkEndWithIt(t *testing.T) {
	cmd, processes := startBench(t, t.TempDir(), &bytes.Buffer{})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	await(t, "the end of the processes", func() bool { return gone(processes) })
}
