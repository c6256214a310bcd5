// Package docs tests that the documents speak of what is there.
package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryTestThatTheGuaranteesNameExists(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"../queue/*_test.go", "../queue/internal/*/*_test.go", "../generics/*_test.go", "../cmd/localqueue/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests match %s: %v", pattern, err)
		}
		for _, f := range files {
			tests.WriteString(read(t, f))
		}
	}
	named := regexp.MustCompile("`((?:Test|Benchmark|Rule[0-9]+)[A-Za-z0-9_]+)`").FindAllStringSubmatch(read(t, "guarantees.md"), -1)
	if len(named) < 20 {
		t.Fatalf("the guarantees name %d tests: is the pattern right?", len(named))
	}
	for _, n := range named {
		if !regexp.MustCompile(`\b` + n[1] + `\b`).MatchString(tests.String()) {
			t.Errorf("docs/guarantees.md names %s, which is no test", n[1])
		}
	}
}

func TestEveryVerbIsDocumented(t *testing.T) {
	cmd := exec.Command("go", "run", "../cmd/localqueue", "--help")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	verbs := regexp.MustCompile(`(?m)^  ([a-z]+)  +[A-Z]`).FindAllStringSubmatch(string(out), -1)
	if len(verbs) < 20 {
		t.Fatalf("found %d verbs in the help", len(verbs))
	}
	doc := read(t, "cli.md")
	for _, v := range verbs {
		if v[1] != "help" && !regexp.MustCompile(`\b`+v[1]+`\b`).MatchString(doc) {
			t.Errorf("docs/cli.md doesn't mention %s", v[1])
		}
	}
}

func TestTheReadmesProgramCompiles(t *testing.T) {
	_, rest, ok := strings.Cut(read(t, "../README.md"), "```go\npackage main")
	program, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the README has no complete program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte("package main"+program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", os.DevNull, file)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
