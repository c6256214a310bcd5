package sqlite_test

import (
	"database/sql"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// The original's jobs, as its put, get, ack, nack, fail and reclaim leave them; the delayed one falls due in 2100.
const originalJobs = `
INSERT INTO messages (id, queue, payload, status, attempts, max_attempts, available_at, lease_until, receipt, last_error, job_id, created_at, updated_at) VALUES
 (1, 'mail',  '{"n": 0}', 2, 1, 2, 1784000000000, NULL,          NULL,   NULL,    'k0', 1784000000000, 1784000000001),
 (2, 'mail',  '{"n": 1}', 3, 2, 2, 1784000000000, NULL,          NULL,   'bad',   'k1', 1784000000000, 1784000000001),
 (3, 'mail',  '{"n": 2}', 1, 2, 2, 1784000000001, 1784000060001, '12-3', 'a',     'k2', 1784000000000, 1784000000001),
 (4, 'mail',  '{"n": 3}', 0, 1, 2, 4102444800000, NULL,          NULL,   'later', NULL, 1784000000000, 1784000000001),
 (5, 'mail',  '{"n": 4}', 0, 0, 2, 1784000000000, NULL,          NULL,   NULL,    NULL, 1784000000000, 1784000000000),
 (6, 'other', '1',        0, 0, 4, 1784000000002, NULL,          NULL,   NULL,    'k0', 1784000000002, 1784000000002),
 (7, 'short', '1',        3, 1, 1, 1784000000003, NULL,          NULL,   NULL,    NULL, 1784000000003, 1784000000103),
 (8, 'short', x'',        0, 0, 1, 1784000000003, NULL,          NULL,   NULL,    NULL, 1784000000003, 1784000000003),
 (9, 'short', '1',        0, 0, 1, 1784000000003, NULL,          NULL,   NULL,    NULL, 1784000000003, 1784000000003);
UPDATE messages SET payload = CAST(payload AS BLOB);
DELETE FROM messages WHERE id = 9; -- purged: its id is not given again
`

// original makes a file of that version's shape with those jobs in it.
func original(t *testing.T, version string) (*sql.DB, string) {
	t.Helper()
	ddl, err := os.ReadFile("testdata/original/" + version + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	db := openFile(t)
	exec(t, db, string(ddl))
	exec(t, db, originalJobs)
	if version == "1.4.1" {
		exec(t, db, "UPDATE messages SET failure_reason = 'explicit_permanent_failure', dedup_key = 'd', dedup_fingerprint = 'f' WHERE id = 2")
		exec(t, db, "UPDATE messages SET failure_reason = 'retries_exhausted' WHERE id = 7")
		// Its event bus points at jobs.
		exec(t, db, "INSERT INTO event_bus_executions (execution_id, bus_name, source_name, created_at, updated_at) VALUES ('e', 'b', 's', 1, 1)")
		exec(t, db, "INSERT INTO event_bus_execution_deliveries (execution_id, message_id) VALUES ('e', 3)")
		exec(t, db, "INSERT INTO event_bus_delivery_edges (parent_message_id, child_message_id) VALUES (1, 5)")
	}
	return db, string(ddl)
}

var versions = map[string]struct{ explicit, exhausted string }{
	"1.0.0": {"NULL", "NULL"},
	"1.4.1": {"'explicit_permanent_failure'", "'retries_exhausted'"},
}

func TestEveryJobOfAnOriginalFileIsAdopted(t *testing.T) {
	for version, reasons := range versions {
		t.Run(version, func(t *testing.T) {
			db, _ := original(t, version)
			before := columns(t, db)
			jobs := dump(t, db, "messages ORDER BY id", before...)
			up(t, db)
			equal(t, "the original's columns", jobs, dump(t, db, "messages ORDER BY id", before...))
			equal(t, "the new columns", []string{
				"1 1 0 0 0 NULL NULL NULL NULL",
				"2 2 0 0 0 NULL NULL " + reasons.explicit + " NULL",
				"3 2 0 0 0 NULL NULL NULL NULL",
				"4 1 1 0 0 NULL NULL NULL NULL",
				"5 0 0 0 0 NULL NULL NULL NULL",
				"6 0 0 0 0 NULL NULL NULL NULL",
				"7 1 0 0 0 NULL NULL " + reasons.exhausted + " NULL",
				"8 0 0 0 0 NULL NULL NULL NULL",
			}, dump(t, db, "messages ORDER BY id", "id", "delivery", "delayed", "priority", "key_scope", "claimed_at", "claimed_by", "reason", "headers"))
			equal(t, "counters", []string{"'mail' 2 1 1 1 1", "'other' 1 0 0 0 0", "'short' 1 0 0 0 1"},
				dump(t, db, "queues ORDER BY name", "name", "ready", "delayed", "leased", "acked", "failed"))
			equal(t, "the ids given", []string{"9"}, dump(t, db, "sqlite_sequence WHERE name = 'messages'", "seq"))
			checkCounters(t, db)
		})
	}
}

func TestAnOriginalFileComesBackAsItWas(t *testing.T) {
	for version := range versions {
		t.Run(version, func(t *testing.T) {
			db, _ := original(t, version)
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
	for version := range versions {
		t.Run(version, func(t *testing.T) {
			db, ddl := original(t, version)
			up(t, db)
			objects := schema(t, db)
			exec(t, db, ddl) // what it runs whenever it opens a file
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
