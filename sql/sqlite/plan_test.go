package sqlite_test

import (
	"database/sql"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scans are what a plan may walk whole. Everything else is a seek: a scan's cost grows with the backlog.
var scans = map[string][]string{
	// What the caller handed in, a constant, or the few rows of a sub-select or a recursion.
	"": {"SCAN json_each VIRTUAL TABLE INDEX 1:", "SCAN json_each VIRTUAL TABLE INDEX 0:", "SCAN r VIRTUAL TABLE INDEX 1:", "SCAN CONSTANT ROW"},

	"FailedIDs": {"SCAN p"},
	"JobByKey":  {"SEARCH k"},
	"OldestDue": {"SCAN p", "SEARCH due"},
	// One row per queue, per table with AUTOINCREMENT, per migration.
	"Queues":            {"SCAN queues"},
	"Counters":          {"SCAN queues"},
	"LastID":            {"SEARCH sqlite_sequence"},
	"ReserveIDs":        {"SCAN sqlite_sequence"},
	"SchemaVersion":     {"SEARCH goose_db_version"},
	"AppliedMigrations": {"SCAN goose_db_version"},
	// A check of the whole file reads the whole file, in the order of one index or of the ids.
	"CountStates":    {"SCAN messages", "USE TEMP B-TREE FOR GROUP BY"},
	"ImpossibleJobs": {"SCAN messages"},
	"Orphans":        {"SCAN p", "SCAN d"},
	"DoublePayloads": {"SCAN p"},
	"LateHistory":    {"SCAN d"},
	"LongHistory":    {"SCAN deliveries"},
	"DoubleKeys":     {"SCAN messages USING INDEX idx_messages_job_id"},
	"SchemaObjects":  {"SCAN sqlite_schema"},
	// One end of the table: the highest id, or a bounded number of the newest rows.
	"HighestID":   {"SEARCH messages"},
	"LatestStamp": {"SCAN m", "SEARCH s"},
}

// plan is the query's whole plan, a line a step, indented under its parent.
func plan(t *testing.T, db *sql.DB, q query) string {
	t.Helper()
	var args []any
	for _, name := range q.args() {
		args = append(args, sql.Named(name, nil))
	}
	rows, err := db.Query("EXPLAIN QUERY PLAN "+q.sqlite(), args...)
	if err != nil {
		t.Fatalf("%s: %v", q.name, err)
	}
	defer func() { _ = rows.Close() }()
	var text strings.Builder
	depth := map[int]int{0: 0} // of a step's children
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		depth[id] = depth[parent] + 1
		text.WriteString(strings.Repeat("  ", depth[parent]) + detail + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// A filling is how many jobs a file has and the weights of their states: what ANALYZE learns is how the rows are spread,
// and each state may prevail, or be missing.
type filling struct {
	jobs    int
	weights [5]int // ready, delayed, leased, acked, failed
}

var fillings = map[string]filling{
	"a full file":                 {20_000, [5]int{1, 1, 1, 1, 1}},
	"a hundred jobs":              {100, [5]int{1, 1, 1, 1, 1}},
	"mostly ready jobs":           {20_000, [5]int{96, 1, 1, 1, 1}},
	"mostly delayed jobs":         {20_000, [5]int{1, 96, 1, 1, 1}},
	"mostly leased jobs":          {20_000, [5]int{1, 1, 96, 1, 1}},
	"mostly acked jobs":           {20_000, [5]int{1, 1, 1, 96, 1}},
	"mostly failed jobs":          {20_000, [5]int{1, 1, 1, 1, 96}},
	"nothing but ready jobs":      {2_000, [5]int{1, 0, 0, 0, 0}},
	"nothing but finished jobs":   {2_000, [5]int{0, 0, 0, 1, 1}},
	"nothing but unfinished jobs": {2_000, [5]int{1, 1, 1, 0, 0}},
}

// fill makes the jobs, over two queues, with keys, history and side payloads.
func fill(t *testing.T, db *sql.DB, f filling) {
	t.Helper()
	total, bounds := 0, make([]any, 0, 5)
	for _, w := range f.weights {
		total += w
		bounds = append(bounds, total)
	}
	args := append([]any{f.jobs, total}, bounds[:4]...)
	exec(t, db, `
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < ?1),
s AS (SELECT i, i * 7919 % ?2 AS w FROM r),
k AS (SELECT i, CASE WHEN w < ?3 THEN 0 WHEN w < ?4 THEN 4 WHEN w < ?5 THEN 1 WHEN w < ?6 THEN 2 ELSE 3 END AS kind FROM s)
INSERT INTO messages (queue, payload, status, delayed, priority, attempts, delivery, max_attempts, available_at, lease_until, receipt,
                      job_id, key_scope, claimed_at, reason, created_at, updated_at)
SELECT iif(i % 2, 'mail', 'reports'), iif(i % 10, x'01', x''), kind % 4, kind = 4, i % 3, kind BETWEEN 1 AND 3, kind BETWEEN 1 AND 3, 3, 1000 + i,
       iif(kind = 1, 9000 + i, NULL), iif(kind = 1, '1-' || i, NULL), iif(i % 3, NULL, 'key' || i), i % 2, iif(kind = 1, 900 + i, NULL),
       iif(kind = 3, 'failed', NULL), i, 1000 + i FROM k`, args...)
	exec(t, db, "INSERT INTO payloads (message_id, data) SELECT id, zeroblob(3000) FROM messages WHERE length(payload) = 0")
	exec(t, db, `INSERT INTO deliveries (message_id, delivery, attempt, started_at, ended_at, outcome)
SELECT id, 1, 1, created_at, updated_at, 'failed' FROM messages WHERE status = 3`)
	// Settings as they are in a file that has lived: one queue paused, one that forgets.
	exec(t, db, "INSERT INTO queues (name, paused, keep_acked) VALUES ('idle', 1, 86400000)")
}

func goldenPlans(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/plans/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	plans := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		plans[strings.TrimSuffix(filepath.Base(file), ".txt")] = string(text)
	}
	return plans
}

func plans(t *testing.T, db *sql.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, q := range allQueries(t) {
		all[q.name] = plan(t, db, q)
	}
	return all
}

func comparePlans(t *testing.T, db *sql.DB) {
	t.Helper()
	golden, got := goldenPlans(t), plans(t, db)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if diff := cmp.Diff(golden[name], got[name]); diff != "" {
			t.Errorf("%s (-golden +got):\n%s", name, diff)
		}
	}
}

func TestEveryPlanIsTheGoldenOneOnAnEmptyFile(t *testing.T) {
	db := openFile(t)
	up(t, db)
	if *update {
		writeGoldenPlans(t, plans(t, db))
	}
	comparePlans(t, db)
}

func writeGoldenPlans(t *testing.T, plans map[string]string) {
	t.Helper()
	if err := os.RemoveAll("testdata/plans"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata/plans", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range plans {
		if err := os.WriteFile("testdata/plans/"+name+".txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoPlanChangesWhenTheFileFillsNorWhenItIsAnalyzed(t *testing.T) {
	for name, f := range fillings {
		t.Run(name, func(t *testing.T) {
			db := openFile(t)
			up(t, db)
			fill(t, db, f)
			t.Run("as it is", func(t *testing.T) { comparePlans(t, db) })
			exec(t, db, "ANALYZE")
			t.Run("analyzed", func(t *testing.T) { comparePlans(t, db) })
		})
	}
}

// ANALYZE on a drained queue teaches the planner that walking the table is cheaper than 25 seeks (its guess for any
// IN (SELECT ...)), and it goes on believing that when a million jobs have come. No form of the statement talks it out
// of that; dropping the table of figures does, for every connection at once, because it changes the schema.
func TestDroppingTheFiguresOfADrainedFileRestoresEveryPlan(t *testing.T) {
	db := openFile(t)
	db.SetMaxOpenConns(2)
	other, err := db.Conn(t.Context()) // so that the next statements go through another connection, which learns the figures
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	up(t, db)
	fill(t, db, filling{5, [5]int{1, 1, 1, 1, 1}})
	exec(t, db, "ANALYZE")
	if cmp.Equal(goldenPlans(t), plans(t, db)) {
		t.Error("no plan has changed: the engine need not drop the figures any more")
	}
	if _, err := other.ExecContext(t.Context(), "DROP TABLE sqlite_stat1"); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "DELETE FROM deliveries") // a statement that runs notices the new schema; one that is only explained doesn't
	comparePlans(t, db)
}

func TestEveryGoldenPlanBelongsToAQuery(t *testing.T) {
	names := map[string]bool{}
	for _, q := range allQueries(t) {
		names[q.name] = true
	}
	for name := range goldenPlans(t) {
		if !names[name] {
			t.Errorf("testdata/plans/%s.txt: there is no such query; run go test with -update", name)
		}
	}
}

func TestNoGoldenPlanWalksAWholeTableNorSorts(t *testing.T) {
	for name, text := range goldenPlans(t) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			// A search that uses nothing is the walk of min() or max().
			walks := strings.HasPrefix(line, "SCAN ") || strings.HasPrefix(line, "USE TEMP B-TREE") ||
				strings.HasPrefix(line, "SEARCH ") && !strings.Contains(line, " USING ")
			if walks && !slices.Contains(scans[""], line) && !slices.Contains(scans[name], line) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
