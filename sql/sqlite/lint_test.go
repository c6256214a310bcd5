package sqlite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lint names the traps a query walks into. Each of them is invisible in a result: it costs time, or binds a wrong value.
func lint(q query) []string {
	list := lexemes(q.text)
	var found []string
	report := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	if q.comment == "" {
		report("no comment says why")
	}
	lintParameters(list, report)
	lintOrdered(list, report)
	lintSettle(list, report)
	return found
}

// lintParameters: sqlc numbers bare parameters and slices by itself, and mixed with named ones binds wrong values silently.
func lintParameters(list []lexeme, report func(string, ...any)) {
	for i, t := range list {
		switch {
		case t.text[0] == '?', t.text[0] == ':', t.text[0] == '$':
			report("%s is no parameter of the form @name", t.text)
		case strings.HasPrefix(t.text, "sqlc.") && t.text != "sqlc.narg":
			report("%s is not used here: @name, or sqlc.narg('name')", t.text)
		case t.text == "sqlc.narg" && (i+2 >= len(list) || list[i+2].text[0] != '\''):
			report("sqlc.narg takes a quoted name")
		}
	}
}

// lintOrdered: SQLite plans a statement anew at every call when its plan may depend on a parameter's value. It may, in
// its eyes, inside a select with an order, a limit or a join, and in a limit; a CAST hides the value from the planner.
func lintOrdered(list []lexeme, report func(string, ...any)) {
	for i, t := range list {
		if t.is("LIMIT", "OFFSET") {
			if v := list[min(i+1, len(list)-1)]; !v.is("CAST") && strings.Trim(v.text, "0123456789") != "" {
				report("%s %s without CAST", strings.ToUpper(t.text), parameterName(list, i+1))
			}
		}
		first := i // of a select, which is in parentheses or the whole or the last part of the statement
		if t.text == "(" && i+1 < len(list) && list[i+1].is("SELECT", "WITH", "VALUES") {
			first = i + 1
		} else if t.depth > 0 || !t.is("SELECT", "WITH") {
			continue
		}
		inside := list[first:closing(list, i)]
		ordered := slices.ContainsFunc(inside, func(in lexeme) bool { return in.depth == t.depth && in.is("ORDER", "LIMIT", "JOIN") })
		for j, in := range inside {
			limit := j > 0 && inside[j-1].is("LIMIT", "OFFSET") // reported above
			if ordered && !limit && (in.isParameter() || in.is("sqlc.narg")) && !isCast(list, first+j) {
				report("%s inside an ordered select without CAST", parameterName(list, first+j))
			}
		}
	}
}

// lintSettle: a statement that names its rows by id must not let the planner come to them by way of a queue, its leases, or
// in a batch, where ANALYZE's figures may tempt it, a state.
func lintSettle(list []lexeme, report func(string, ...any)) {
	where := slices.IndexFunc(list, func(t lexeme) bool { return t.depth == 0 && t.is("WHERE") })
	if where < 0 || !list[0].is("UPDATE", "DELETE") {
		return
	}
	cond := list[where+1:]
	byID, byList := false, false
	for i, t := range cond {
		if t.depth > 0 || !t.is("id") || i+3 >= len(cond) {
			continue
		}
		single := cond[i+1].text == "=" && cond[i+2].isParameter()
		batch := cond[i+1].is("IN") && cond[i+3].is("SELECT") && slices.ContainsFunc(cond, func(t lexeme) bool { return t.is("json_each") })
		byID, byList = byID || single || batch, byList || batch
	}
	if !byID {
		return
	}
	for i, t := range cond {
		if t.depth > 0 || !t.is("queue", "lease_until", "status") || i+2 >= len(cond) {
			continue
		}
		// A state that comes as a parameter, or is excluded, picks no partial index.
		if t.is("status") && (!byList || !cond[i+1].is("=", "==", "IN", "IS") || cond[i+2].is("CAST")) {
			continue
		}
		compared := cond[i+1].is("=", "==", "<>", "!=", "<", ">", "<=", ">=", "IN", "IS", "BETWEEN")
		first := i
		if i >= 2 && cond[i-1].text == "." { // m.queue
			first = i - 2
		}
		if compared && (first == 0 || cond[first-1].text != "+") {
			report("%s is compared without + beside an id", t.text)
		}
	}
}

// closing is the index of the parenthesis that ends the one at open, or the end.
func closing(list []lexeme, open int) int {
	for i := open + 1; i < len(list); i++ {
		if list[i].text == ")" && list[i].depth == list[open].depth {
			return i
		}
	}
	return len(list)
}

// isCast says whether the parameter at i stands in CAST(... AS type), itself and not as a part of something larger.
func isCast(list []lexeme, i int) bool {
	end := i
	if list[i].is("sqlc.narg") {
		end = i + 3
	}
	return i >= 2 && list[i-1].text == "(" && list[i-2].is("CAST") && end+1 < len(list) && list[end+1].is("AS")
}

func parameterName(list []lexeme, i int) string {
	if i+2 < len(list) && list[i].is("sqlc.narg") {
		return "@" + strings.Trim(list[i+2].text, "'")
	}
	return list[min(i, len(list)-1)].text
}

func TestEveryQueryKeepsClearOfTheKnownTraps(t *testing.T) {
	queries := allQueries(t)
	if len(queries) < 40 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	for _, q := range queries {
		for _, trap := range lint(q) {
			t.Errorf("%s: %s: %s", q.file, q.name, trap)
		}
	}
}

func TestEveryQueryIsParsedWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range allQueries(t) {
		if q.text == "" || !strings.HasSuffix(q.text, ";") || strings.Count(q.text, ";") != 1 {
			t.Errorf("%s: %s is no single statement: %q", q.file, q.name, q.text)
		}
		if seen[q.name] {
			t.Errorf("%s: %s stands twice", q.file, q.name)
		}
		seen[q.name] = true
	}
	for file, text := range queryFiles(t) {
		if named, read := strings.Count(text, "-- name:"), len(readQueries(file, text)); named != read {
			t.Errorf("%s: %d names, %d queries read", file, named, read)
		}
	}
}

func TestTheLintReportsEveryTrap(t *testing.T) {
	const why = "-- Why this form.\n"
	for _, tt := range []struct {
		name, sql string
		want      []string
	}{
		{"a good one passes", why + "-- name: A :exec\nUPDATE messages SET status = 2 WHERE id IN (SELECT value FROM json_each(CAST(@ids AS TEXT)))\n" +
			"  AND +queue = CAST(@queue AS TEXT) AND +lease_until > @now;", nil},
		{"no comment", "-- name: A :one\nSELECT 1;", []string{"no comment says why"}},
		{"a comment of something else", why + "\n-- name: A :one\nSELECT 1;", []string{"no comment says why"}},
		{"a good one after a comment that doesn't name it", why + "-- name: B :one\nSELECT 1;\n\n-- name: A :one\nSELECT 1;", []string{"no comment says why"}},
		{"a comment for two", "-- B and A are twins.\n-- name: B :one\nSELECT 1;\n\n-- name: A :one\nSELECT 1;", nil},
		{"a bare parameter", why + "-- name: A :one\nSELECT ? FROM jobs;", []string{"? is no parameter of the form @name"}},
		{"a numbered parameter", why + "-- name: A :one\nSELECT ?1 FROM jobs;", []string{"?1 is no parameter of the form @name"}},
		{"another sign", why + "-- name: A :one\nSELECT :x, $y FROM jobs;", []string{":x is no parameter of the form @name", "$y is no parameter of the form @name"}},
		{"a question mark in a text or a comment is none", why + "-- name: A :one\nSELECT '?' -- really?\n;", nil},
		{"a slice", why + "-- name: A :many\nSELECT 1 WHERE 1 IN (sqlc.slice('ids'));", []string{"sqlc.slice is not used here: @name, or sqlc.narg('name')"}},
		{"sqlc.arg", why + "-- name: A :many\nSELECT sqlc.arg('x');", []string{"sqlc.arg is not used here: @name, or sqlc.narg('name')"}},
		{"a limit", why + "-- name: A :many\nSELECT id FROM jobs ORDER BY id LIMIT @n;", []string{"LIMIT @n without CAST"}},
		{"an offset", why + "-- name: A :many\nSELECT id FROM jobs LIMIT 1 OFFSET @n;", []string{"OFFSET @n without CAST"}},
		{"a constant limit passes", why + "-- name: A :many\nSELECT id FROM jobs LIMIT 20 OFFSET 1;", nil},
		{"an ordered sub-select", why + "-- name: A :one\nSELECT (SELECT id FROM messages WHERE queue = @queue ORDER BY id);",
			[]string{"@queue inside an ordered select without CAST"}},
		{"a limited sub-select in lower case", why + "-- name: A :one\nselect (select id from messages where queue = @queue limit 1);",
			[]string{"@queue inside an ordered select without CAST"}},
		{"an ordered statement", why + "-- name: A :many\nSELECT id FROM messages WHERE queue = @queue ORDER BY id;",
			[]string{"@queue inside an ordered select without CAST"}},
		{"an ordered insert", why + "-- name: A :exec\nINSERT INTO payloads SELECT id, @data FROM messages ORDER BY id;",
			[]string{"@data inside an ordered select without CAST"}},
		{"a join", why + "-- name: A :many\nSELECT m.id FROM messages m LEFT JOIN payloads p ON p.message_id = m.id WHERE m.id = @id;",
			[]string{"@id inside an ordered select without CAST"}},
		{"a nullable one", why + "-- name: A :one\nSELECT (SELECT id FROM messages WHERE queue = sqlc.narg('queue') LIMIT 1);",
			[]string{"@queue inside an ordered select without CAST"}},
		{"deep inside one", why + "-- name: A :one\nSELECT (SELECT id FROM messages WHERE id IN (SELECT message_id FROM payloads WHERE data = @data) LIMIT 1);",
			[]string{"@data inside an ordered select without CAST"}},
		{"a cast of something larger", why + "-- name: A :one\nSELECT (SELECT id FROM messages WHERE id > CAST(@a + 1 AS INTEGER) LIMIT 1);",
			[]string{"@a inside an ordered select without CAST"}},
		{"a recursive one", why + "-- name: A :one\nWITH RECURSIVE p AS (SELECT id FROM messages WHERE id > @a LIMIT 1) SELECT id FROM p;",
			[]string{"@a inside an ordered select without CAST"}},
		{"casts pass", why + "-- name: A :one\nSELECT (SELECT id FROM messages WHERE queue = CAST(@q AS TEXT) AND x = CAST(sqlc.narg('y') AS TEXT) LIMIT CAST(@n AS INTEGER));", nil},
		{"a sub-select without order passes", why + "-- name: A :one\nSELECT (SELECT max(id) FROM messages WHERE queue = @queue);", nil},
		{"a batch by queue", why + "-- name: A :exec\nUPDATE messages SET status = 2 WHERE id IN (SELECT value FROM json_each(@ids)) AND queue = @queue AND +lease_until > @now;",
			[]string{"queue is compared without + beside an id"}},
		{"a batch by lease", why + "-- name: A :exec\nDELETE FROM messages WHERE lease_until > @now AND id IN (SELECT value FROM json_each(@ids)) AND +queue = @queue;",
			[]string{"lease_until is compared without + beside an id"}},
		{"a batch by status", why + "-- name: A :exec\nDELETE FROM messages WHERE id IN (SELECT value FROM json_each(@ids)) AND status = 3;",
			[]string{"status is compared without + beside an id"}},
		{"a batch of a given or an excluded status passes", why + "-- name: A :exec\nDELETE FROM messages\n" +
			"WHERE id IN (SELECT value FROM json_each(@ids)) AND status = CAST(@status AS INTEGER) AND status <> 1;", nil},
		{"one row of a status passes", why + "-- name: A :exec\nDELETE FROM messages WHERE id = @id AND status = 3;", nil},
		{"one row by queue", why + "-- name: A :exec\nDELETE FROM messages WHERE id = @id AND messages.queue = @queue;",
			[]string{"queue is compared without + beside an id"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			queries := readQueries("sample.sql", tt.sql)
			i := slices.IndexFunc(queries, func(q query) bool { return q.name == "A" })
			if i < 0 {
				t.Fatal("the sample holds no query A")
			}
			if diff := cmp.Diff(tt.want, lint(queries[i])); diff != "" {
				t.Errorf("traps (-want +got):\n%s", diff)
			}
		})
	}
}
