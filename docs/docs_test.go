// Package docs tests that the documents speak of what is there.
package docs

import (
	"fmt"
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

// testNames are the names of tests, benchmarks and conformance cases that a document quotes.
var testNames = regexp.MustCompile("`((?:Test|Benchmark|Fuzz|Rule[0-9]+)[A-Za-z0-9_]+)`")

func TestEveryTestThatTheDocumentsNameExists(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"../*/*_test.go", "../queue/internal/*/*_test.go", "../cmd/localqueue/*_test.go", "../chaos/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests match %s: %v", pattern, err)
		}
		for _, f := range files {
			tests.WriteString(read(t, f))
		}
	}
	all := tests.String()
	for document, least := range map[string]int{"guarantees.md": 20, "cases.md": 50} {
		named := testNames.FindAllStringSubmatch(read(t, document), -1)
		if len(named) < least {
			t.Fatalf("docs/%s names %d tests: is the pattern right?", document, len(named))
		}
		for _, n := range named {
			if !strings.Contains(all, "func "+n[1]+"(") && !strings.Contains(all, `name: "`+n[1]+`"`) {
				t.Errorf("docs/%s names %s, which is no test", document, n[1])
			}
		}
	}
}

func TestTheCasesAreAllThere(t *testing.T) {
	text := read(t, "cases.md")
	for n := 1; n <= 24; n++ {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d \|.*$`, n)).FindString(text)
		if !testNames.MatchString(row) {
			t.Errorf("docs/cases.md shows nothing for case %d", n)
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
