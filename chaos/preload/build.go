package preload

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

//go:embed lib/preload.c
var source []byte

// Library is the built library. It is removed with the test that built it.
type Library struct{ path string }

// Build compiles the library. The test is skipped elsewhere than on Linux, and without gcc; cgo needs gcc too, so it is there
// where SQLite is built.
func Build(tb testing.TB) *Library {
	tb.Helper()
	if runtime.GOOS != "linux" {
		tb.Skip("LD_PRELOAD is Linux's")
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		tb.Skipf("no gcc to build the preloaded library with: %v", err)
	}
	dir := tb.TempDir()
	text, lib := filepath.Join(dir, "preload.c"), filepath.Join(dir, "preload.so")
	if err := os.WriteFile(text, source, 0o600); err != nil {
		tb.Fatal(err)
	}
	out, err := exec.Command(gcc, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", lib, text, "-ldl", "-lpthread").CombinedOutput()
	if err != nil {
		tb.Fatalf("gcc: %v\n%s", err, out)
	}
	return &Library{path: lib}
}

// The environment of a child, as lib/preload.c reads it.
const (
	envDir     = "LOCALQUEUE_PRELOAD_DIR"
	envLog     = "LOCALQUEUE_PRELOAD_LOG"
	envControl = "LOCALQUEUE_PRELOAD_CONTROL"
)

// Options say what the library does in a child.
type Options struct {
	Dir     string   // what is below it is watched; it must exist
	Log     string   // where records are appended; outside Dir. "": nowhere
	Control *Control // which calls fail. nil: none
}

// Env is what a child's environment needs beside the usual. It panics if Dir doesn't exist.
func (l *Library) Env(o Options) []string {
	dir, err := filepath.EvalSymlinks(o.Dir) // SQLite resolves links before it opens
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		panic("preload: " + err.Error())
	}
	first := l.path
	if others := os.Getenv("LD_PRELOAD"); others != "" {
		first += ":" + others
	}
	env := []string{"LD_PRELOAD=" + first, envDir + "=" + dir}
	if o.Log != "" {
		env = append(env, envLog+"="+o.Log)
	}
	if o.Control != nil {
		env = append(env, envControl+"="+o.Control.path)
	}
	return env
}
