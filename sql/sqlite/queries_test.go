package sqlite_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A query is one named statement of queries/*.sql.
type query struct {
	file    string
	name    string
	comment string // what stands above it, one line
	text    string // the statement, without its name line and without the next one's comment
}

// args are the names of the query's parameters, each once, in the order of their first use.
func (q query) args() []string {
	var names []string
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`@(\w+)|sqlc\.narg\('(\w+)'\)`).FindAllStringSubmatch(q.text, -1) {
		if name := m[1] + m[2]; !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// sqlite is the statement as SQLite takes it: it knows @x as it is, and only sqlc knows a nullable one.
func (q query) sqlite() string {
	return regexp.MustCompile(`sqlc\.narg\('(\w+)'\)`).ReplaceAllString(q.text, "@$1")
}

// readQueries parses a queries directory's file: comment lines, a name line, a statement, and so on.
func readQueries(file, text string) []query {
	var (
		queries []query
		comment []string
		name    = regexp.MustCompile(`^-- name: (\w+) :\w+$`)
		open    *query // the one whose statement is being read
	)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch m := name.FindStringSubmatch(line); {
		case m != nil:
			q := query{file: file, name: m[1], comment: strings.Join(comment, " ")}
			// Two that differ in a word share one comment, which names both.
			if n := len(queries); q.comment == "" && n > 0 && slices.Contains(strings.Fields(queries[n-1].comment), q.name) {
				q.comment = queries[n-1].comment
			}
			queries = append(queries, q)
			open, comment = &queries[len(queries)-1], nil
		case open != nil:
			open.text += line + "\n"
			if strings.HasSuffix(strings.TrimSpace(line), ";") {
				open.text, open = strings.TrimSpace(open.text), nil
			}
		case strings.HasPrefix(line, "--"):
			comment = append(comment, strings.TrimSpace(strings.TrimPrefix(line, "--")))
		case line == "":
			comment = nil // a comment that stands alone is not the query's
		}
	}
	return queries
}

// queryFiles are the texts of queries/*.sql by name.
func queryFiles(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("queries/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("queries/*.sql: %v, %v", files, err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	return texts
}

func allQueries(t *testing.T) []query {
	t.Helper()
	texts := queryFiles(t)
	var queries []query
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		queries = append(queries, readQueries(file, texts[file])...)
	}
	return queries
}

// A lexeme is a word, a parameter, a number, a string or a sign of SQL; comments are gone.
type lexeme struct {
	text  string
	depth int // of parentheses; an opening one counts inside, its closing one too
}

func (t lexeme) is(words ...string) bool {
	for _, word := range words {
		if strings.EqualFold(t.text, word) {
			return true
		}
	}
	return false
}

func (t lexeme) isParameter() bool { return strings.ContainsAny(t.text[:1], "@?:$") }

var lexemePattern = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'|"[^"]*"|sqlc\.\w+|[@:$]\w+|\?\d*|\w+|<>|<=|>=|==|!=|\|\||\S`)

func lexemes(sql string) []lexeme {
	var list []lexeme
	depth := 0
	for _, text := range lexemePattern.FindAllString(sql, -1) {
		if strings.HasPrefix(text, "--") {
			continue
		}
		if text == "(" {
			depth++
		}
		list = append(list, lexeme{text, depth})
		if text == ")" {
			depth--
		}
	}
	return list
}
