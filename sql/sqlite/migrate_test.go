package sqlite_test

import (
	"compress/gzip"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/localqueue/localqueue/sql/sqlite/migrations"
)

// dump is what a query finds, a line a row, the values in SQL's own notation.
func dump(t *testing.T, db *sql.DB, from string, columns ...string) []string {
	t.Helper()
	rows, err := db.Query("SELECT quote(" + strings.Join(columns, ") || ' ' || quote(") + ") FROM " + from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func columns(t *testing.T, db *sql.DB) []string {
	t.Helper()
	names := dump(t, db, "pragma_table_info('messages') ORDER BY cid", "name")
	for i, name := range names {
		names[i] = strings.Trim(name, "'")
	}
	return names
}

// schema is every object of the file but goose's own, with its text; white space doesn't count.
func schema(t *testing.T, db *sql.DB) []string {
	t.Helper()
	lines := dump(t, db, "sqlite_schema WHERE tbl_name NOT LIKE 'goose%' AND tbl_name NOT LIKE 'sqlite%' ORDER BY name", "type", "name", "sql")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

func equal(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// checkCounters compares the counters with a count (a queue without jobs keeps a row of zeros), and the file with SQLite's idea of a sound one.
func checkCounters(t *testing.T, db *sql.DB) {
	t.Helper()
	counted := dump(t, db, "messages GROUP BY queue ORDER BY queue", "queue", "sum(status = 0)", "sum(status = 0 AND delayed)", "sum(status = 1)",
		"sum(status = 2)", "sum(status = 3)")
	kept := dump(t, db, "queues WHERE abs(ready) + abs(delayed) + abs(leased) + abs(acked) + abs(failed) > 0 ORDER BY name", "name", "ready", "delayed", "leased", "acked", "failed")
	equal(t, "counters", counted, kept)
	equal(t, "integrity", []string{"'ok'"}, dump(t, db, "pragma_integrity_check", "integrity_check"))
}

// fixtures holds files that the original and older versions of ours wrote.
const fixtures = "../../queue/testdata/"

// openFixture opens a copy of such a file.
func openFixture(t *testing.T, name string) *sql.DB {
	t.Helper()
	packed, err := os.Open(fixtures + name + ".db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "localqueue.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return openPath(t, path)
}

// originals are the versions of the original that there are fixtures of.
var originals = []string{"1.0.0", "1.1.0", "1.2.0", "1.4.1"}

// misadopted lists the jobs of a migrated file of the original whose new columns don't say what the old ones do.
// The fixtures' only delays end after 2096, their other times are of 2026.
func misadopted(t *testing.T, db *sql.DB) []string {
	t.Helper()
	wrong := `delivery <> attempts OR delayed <> (status = 0 AND available_at > 4000000000000) OR priority <> 0 OR key_scope <> 0
		OR claimed_at IS NOT NULL OR claimed_by IS NOT NULL OR headers IS NOT NULL OR (status <> 3 AND reason IS NOT NULL)`
	if slices.Contains(columns(t, db), "failure_reason") {
		wrong += " OR (status = 3 AND reason IS NOT failure_reason)"
	}
	jobs := dump(t, db, "messages WHERE "+wrong+" ORDER BY id", "id", "status", "delivery", "delayed", "reason")
	miscounted := dump(t, db, `(SELECT queue, sum(status = 0) AS r, sum(status = 0 AND delayed) AS d, sum(status = 1) AS l,
			sum(status = 2) AS a, sum(status = 3) AS f FROM messages GROUP BY queue)
		LEFT JOIN queues ON name = queue WHERE (r, d, l, a, f) IS NOT (ready, delayed, leased, acked, failed) ORDER BY queue`, "queue")
	return append(jobs, miscounted...)
}

func TestEveryJobOfAnOriginalFileIsAdopted(t *testing.T) {
	for _, version := range originals {
		t.Run(version, func(t *testing.T) {
			db := openFixture(t, "original/"+version)
			before := columns(t, db)
			jobs, given := dump(t, db, "messages ORDER BY id", before...), dump(t, db, "sqlite_sequence", "seq")
			up(t, db)
			equal(t, "the original's columns", jobs, dump(t, db, "messages ORDER BY id", before...))
			equal(t, "jobs whose new columns are wrong", nil, misadopted(t, db))
			equal(t, "the ids given", given, dump(t, db, "sqlite_sequence WHERE name = 'messages'", "seq"))
			checkCounters(t, db)
		})
	}
}

// A migration that forgets a part of its work must not pass the test above.
func TestAMigrationThatForgetsAPartIsFound(t *testing.T) {
	for part, instead := range map[string]string{
		"(SELECT (SELECT failure_reason FROM messages AS m WHERE m.id = o.id)":                                             "(SELECT (SELECT NULL)",
		"UPDATE messages SET delayed = 1 WHERE status = 0 AND available_at > CAST(unixepoch('subsec') * 1000 AS INTEGER);": "",
		"UPDATE messages SET delivery = attempts WHERE attempts > 0;":                                                      "",
		"SELECT queue, sum(status = 0), sum(status = 0 AND delayed),":                                                      "SELECT queue, 0, 0,",
	} {
		files := fstest.MapFS{}
		for _, name := range []string{"00001_messages.sql", "00002_lease_queue.sql"} {
			text, err := migrations.FS.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = &fstest.MapFile{Data: text}
		}
		whole := string(files["00002_lease_queue.sql"].Data)
		if !strings.Contains(whole, part) {
			t.Fatalf("the migration has no %q", part)
		}
		files["00002_lease_queue.sql"].Data = []byte(strings.Replace(whole, part, instead, 1))
		db := openFixture(t, "original/1.4.1")
		p, err := goose.NewProvider(goose.DialectSQLite3, db, files)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(misadopted(t, db)) == 0 {
			t.Errorf("without %q all jobs seem to be right", part)
		}
	}
}

func TestAnOriginalFileComesBackAsItWas(t *testing.T) {
	for _, version := range originals {
		t.Run(version, func(t *testing.T) {
			db := openFixture(t, "original/"+version)
			cols := columns(t, db)
			jobs, objects := dump(t, db, "messages ORDER BY id", cols...), schema(t, db)
			up(t, db)
			down(t, db)
			equal(t, "columns", cols, columns(t, db))
			equal(t, "schema", objects, schema(t, db))
			equal(t, "jobs", jobs, dump(t, db, "messages ORDER BY id", cols...))
			equal(t, "the mark of our files", []string{"0"}, dump(t, db, "pragma_application_id", "application_id"))
			up(t, db)
			equal(t, "jobs after another up", jobs, dump(t, db, "messages ORDER BY id", cols...))
			checkCounters(t, db)
		})
	}
}

func TestTheOriginalAddsNothingToAnAdoptedFileAndItsWritesAreCounted(t *testing.T) {
	for _, version := range []string{"1.0.0", "1.4.1"} {
		t.Run(version, func(t *testing.T) {
			ddl, err := os.ReadFile("testdata/original/" + version + ".sql")
			if err != nil {
				t.Fatal(err)
			}
			db := openFixture(t, "original/"+version)
			up(t, db)
			objects := schema(t, db)
			exec(t, db, string(ddl)) // what it runs whenever it opens a file
			equal(t, "schema", objects, schema(t, db))

			exec(t, db, "INSERT INTO messages (queue, payload, status, attempts, max_attempts, available_at, created_at, updated_at) VALUES ('new', x'31', 0, 0, 2, 5, 5, 5), ('new', x'32', 0, 0, 2, 5, 5, 5)")
			checkCounters(t, db)
			exec(t, db, "UPDATE messages SET status = 1, attempts = 1, lease_until = 70, receipt = 'r', updated_at = 10 WHERE queue = 'new'")
			checkCounters(t, db)
			exec(t, db, "UPDATE messages SET status = 0, lease_until = NULL, receipt = NULL, available_at = 90, updated_at = 20 WHERE queue = 'new'")
			equal(t, "jobs it sent back with a delay wait", []string{"0 1", "0 1"}, dump(t, db, "messages WHERE queue = 'new'", "status", "delayed"))
			for status := range 4 {
				exec(t, db, "DELETE FROM messages WHERE status = ?", status)
				checkCounters(t, db)
			}
		})
	}
}

func TestAFreshFileKeepsItsJobsDownAndUp(t *testing.T) {
	db := openFile(t)
	up(t, db)
	fresh := schema(t, db)
	exec(t, db, `
INSERT INTO messages (id, queue, payload, status, delayed, priority, attempts, delivery, max_attempts, available_at, lease_until, receipt, job_id, key_scope,
                      reason, headers, claimed_at, claimed_by, created_at, updated_at) VALUES
 (1, 'mail', x'0001', 0, 0, 5,  0, 0, 3, 10,            NULL, NULL,  'a', 0, NULL,            '{"h":"1"}', NULL, NULL, 10, 10),
 (2, 'mail', x'',     0, 1, 0,  0, 0, 3, 4102444800000, NULL, NULL,  'b', 1, NULL,            NULL,        NULL, NULL, 10, 10),
 (3, 'mail', x'33',   1, 0, -1, 1, 4, 3, 10,            99,   '4-x', NULL, 0, NULL,           NULL,        11,   'w',  10, 11),
 (4, 'mail', x'',     2, 0, 0,  1, 1, 3, 10,            NULL, NULL,  'b', 1, NULL,            NULL,        11,   'w',  10, 12),
 (5, 'mail', x'35',   3, 0, 0,  3, 7, 3, 10,            NULL, NULL,  'b', 1, 'max_deliveries', NULL,       11,   'w',  10, 13),
 (6, 'mail', x'',     3, 0, 0,  1, 1, 3, 10,            NULL, NULL,  'c', 0, 'cancelled',     NULL,        11,   'w',  10, 13);
INSERT INTO payloads (message_id, data) VALUES (2, x'0022'), (4, zeroblob(3000));
INSERT INTO deliveries (message_id, delivery, attempt, started_at, ended_at, outcome) VALUES (5, 7, 3, 11, 13, 'nacked');`)
	read := []string{"id", "queue", "status", "attempts", "max_attempts", "available_at", "lease_until", "receipt", "payload", "created_at", "updated_at"}
	jobs := dump(t, db, "jobs ORDER BY id", read...)
	checkCounters(t, db)

	down(t, db)
	equal(t, "the original's columns only", []string{"id", "queue", "payload", "status", "attempts", "max_attempts", "available_at", "lease_until", "receipt",
		"last_error", "job_id", "created_at", "updated_at"}, columns(t, db))
	equal(t, "tables", []string{"'messages'"}, dump(t, db, "sqlite_schema WHERE type IN ('table', 'view', 'trigger') AND name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%'", "name"))
	equal(t, "jobs, their bytes inline", jobs, dump(t, db, "messages ORDER BY id", read...))
	equal(t, "keys; those that finished jobs had given up are gone", []string{"'a'", "'b'", "NULL", "NULL", "NULL", "'c'"},
		dump(t, db, "messages ORDER BY id", "job_id"))

	up(t, db)
	equal(t, "jobs after another up", jobs, dump(t, db, "jobs ORDER BY id", read...))
	equal(t, "schema", butMessages(fresh), butMessages(schema(t, db)))
	equal(t, "delivery is attempts, and what waits is held back", []string{"1 0 0", "2 0 1", "3 1 0", "4 1 0", "5 3 0", "6 1 0"},
		dump(t, db, "messages ORDER BY id", "id", "delivery", "delayed"))
	checkCounters(t, db)
}

// butMessages leaves out the text of messages: ALTER TABLE DROP COLUMN cuts the comments that stood beside the column.
func butMessages(objects []string) []string {
	return slices.DeleteFunc(slices.Clone(objects), func(line string) bool { return strings.HasPrefix(line, "'table' 'messages'") })
}

// claimOfAnother is how a program claims a job that knows neither delivery numbers nor the mark of delayed jobs.
const claimOfAnother = "UPDATE messages SET status = 1, attempts = attempts + 1, receipt = 'r', lease_until = 70, updated_at = 10 WHERE id = ?"

func TestAClaimOfAnotherProgramTakesADeliveryNumber(t *testing.T) {
	const jobs = `INSERT INTO messages (id, queue, payload, status, delayed, attempts, delivery, max_attempts, available_at, created_at, updated_at) VALUES
		(1, 'q', x'', 0, 0, 0, 0, 9, 5, 5, 5), (2, 'q', x'', 0, 1, 1, 4, 9, 5, 5, 5), (3, 'q', x'', 0, 0, 0, 7, 9, 5, 5, 5)`
	t.Run("at the claim", func(t *testing.T) {
		db := openFile(t)
		up(t, db)
		exec(t, db, jobs)
		for id := range 3 {
			exec(t, db, claimOfAnother, id+1)
		}
		equal(t, "jobs", []string{"1 1 1 0", "2 2 5 0", "3 1 8 0"}, dump(t, db, "messages ORDER BY id", "id", "attempts", "delivery", "delayed"))
		checkCounters(t, db)
	})
	t.Run("in a file from before", func(t *testing.T) {
		db := openFile(t)
		up(t, db)
		downTo(t, db, 3)
		exec(t, db, jobs)
		for id := range 3 {
			exec(t, db, claimOfAnother, id+1)
		}
		up(t, db)
		equal(t, "jobs", []string{"1 1 1 0", "2 2 4 0", "3 1 7 0"}, dump(t, db, "messages ORDER BY id", "id", "attempts", "delivery", "delayed"))
		checkCounters(t, db)
	})
}
