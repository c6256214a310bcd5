package sqlite_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// sqlText is a text that reads as a statement. In capitals the first word is enough; otherwise it takes the shape of one,
// for "Delete a job" is a command's help. Pragmas and the borders of transactions are not in it: sqlc has no word for them.
var sqlText = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|WITH)\s` +
	`|(?i)^\s*(select\s.*\sfrom\s+(messages|payloads|deliveries|queues|jobs|sqlite_\w+|goose_\w+)\b|(insert|replace)\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s` +
	`|(create|drop|alter)\s+(temp\w*\s+)?(unique\s+)?(virtual\s+)?(table|index|view|trigger)\s)`)

// sqlIn lists the statements among a Go file's string literals.
func sqlIn(t *testing.T, name string, src any) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && sqlText.MatchString(strings.ReplaceAll(text, "\n", " ")) {
				found = append(found, fmt.Sprintf("%d: %.60s", files.Position(lit.Pos()).Line, text))
			}
		}
		return true
	})
	return found
}

// mayHoldSQL says which Go files are exempt: the generated ones, tests, the measuring programs that talk to SQLite on
// their own account, and the faults that are planted to try the harnesses.
func mayHoldSQL(name string) bool {
	for _, dir := range []string{"db/", "bench/limit/", "bench/peers/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	planted, _ := path.Match("queue/planted*.go", name)
	return planted || strings.HasSuffix(name, "_test.go")
}

func TestSQLStandsInSQLFilesOnly(t *testing.T) {
	seen := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "build" || name == "bin" || name != "." && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || mayHoldSQL(name):
			return nil
		}
		seen++
		for _, text := range sqlIn(t, filepath.Join(root, name), nil) {
			t.Errorf("%s:%s", name, text)
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Errorf("%d files read: %v", seen, err)
	}
}

func TestSQLInAGoTextIsFound(t *testing.T) {
	const src = `package p
const a = "SELECT 1"
const b = "\n  insert or ignore into x values (1)"
var c = f("update messages set status = 2", "DELETE FROM jobs", "select id from messages")
const d = ` + "`CREATE\nTABLE x (y)`" + `
const e = "WITH x AS (SELECT 1)" + "DROP VIEW jobs"
const fine = "PRAGMA user_version" + "BEGIN IMMEDIATE" + "COMMIT" + "Delete a job" + "select a queue from the list" + "SELECTED" + "create a file"
`
	want := []string{
		"2: SELECT 1", "3: \n  insert or ignore into x values (1)", "4: update messages set status = 2", "4: DELETE FROM jobs",
		"4: select id from messages", "5: CREATE\nTABLE x (y)", "7: WITH x AS (SELECT 1)", "7: DROP VIEW jobs",
	}
	if diff := cmp.Diff(want, sqlIn(t, "sample.go", src)); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

func TestWhoMayHoldSQL(t *testing.T) {
	for name, want := range map[string]bool{
		"db/sqlite/put.sql.go": true, "queue/put_test.go": true, "bench/limit/limit.go": true, "bench/peers/goqite.go": true, "queue/planted.go": true,
		"queue/planted_faults.go": true, "queue/put.go": false, "bench/run.go": false, "cmd/localqueue/main.go": false, "queue/internal/planted.go": false,
	} {
		if got := mayHoldSQL(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// untyped lists where a generated Go file has interface{} or any, beside its own plumbing: the DBTX interface and the
// variadic arguments of exec, query and queryRow. It means that sqlc could not tell a type, and a cast is missing.
func untyped(t *testing.T, name string, src any) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			return n.Name.Name != "DBTX"
		case *ast.Ellipsis:
			return false
		case *ast.InterfaceType:
			if n.Methods.NumFields() == 0 {
				found = append(found, fmt.Sprintf("%d: interface{}", files.Position(n.Pos()).Line))
			}
		case *ast.Ident:
			if n.Name == "any" {
				found = append(found, fmt.Sprintf("%d: any", files.Position(n.Pos()).Line))
			}
		}
		return true
	})
	return found
}

func TestEveryGeneratedParameterAndResultHasAType(t *testing.T) {
	files, err := filepath.Glob(root + "/db/sqlite/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("db/sqlite/*.go: %v, %v", files, err)
	}
	for _, file := range files {
		for _, place := range untyped(t, file, nil) {
			t.Errorf("%s:%s", file, place)
		}
	}
}

func TestAMissingTypeIsFound(t *testing.T) {
	const src = `package p
type DBTX interface { Exec(string, ...interface{}) (any, error) }
type Params struct { Fine string; Bad interface{} }
func (q *Queries) exec(query string, args ...interface{}) error { return nil }
func (q *Queries) A(bad any) (int64, error) { return 0, nil }
func (q *Queries) B() ([]interface{}, error) { return nil, nil }
`
	want := []string{"3: interface{}", "5: any", "6: interface{}"}
	if diff := cmp.Diff(want, untyped(t, "sample.go", src)); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}
