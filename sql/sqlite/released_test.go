package sqlite_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/localqueue/localqueue/sql/sqlite/migrations"
)

// released lists the migrations that have been released: their hashes and names, in testdata/released.txt. Files that they
// have made are with users, so they are never edited, and each schema they led to has a fixture.
func released(t *testing.T) (names []string, sums map[string]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/released.txt")
	if err != nil {
		t.Fatal(err)
	}
	sums = map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("testdata/released.txt: %q is no hash and name", line)
		}
		names, sums[name] = append(names, name), sum
	}
	return names, sums
}

func TestAReleasedMigrationIsNeverEdited(t *testing.T) {
	names, sums := released(t)
	all, err := migrations.FS.ReadDir(".")
	if err != nil || len(all) < len(names) || len(names) < 2 {
		t.Fatalf("%d migrations, %d released: %v", len(all), len(names), err)
	}
	for i, name := range names { // a new one may only follow
		if all[i].Name() != name {
			t.Errorf("%s stands where %s was released: give a new migration a number after the last", all[i].Name(), name)
			continue
		}
		text, err := migrations.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != sums[name] {
			t.Errorf("%s was released and has been edited: write a new migration (docs/migration.md)", name)
		}
	}
}

// releasedFixtures are the fixtures of our own schemas, as openFixture wants them.
func releasedFixtures(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(fixtures + "released/*.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, "released/"+strings.TrimSuffix(filepath.Base(f), ".db.gz"))
	}
	return names
}

func TestTheLastReleasedSchemaHasAFixture(t *testing.T) {
	names, _ := released(t)
	number, _, _ := strings.Cut(names[len(names)-1], "_")
	if all := releasedFixtures(t); !slices.Contains(all, "released/"+number) {
		t.Errorf("schema %s was released and has no fixture: make fixtures (docs/migration.md); there are %v", number, all)
	}
}

// kept are the columns of the view jobs that every schema has.
var kept = []string{"id", "queue", "status", "delayed", "priority", "attempts", "max_attempts", "delivery", "receipt", "job_id", "key_scope",
	"headers", "reason", "last_error", "available_at", "lease_until", "claimed_at", "claimed_by", "created_at", "updated_at", "payload"}

// contents is all that a file of ours holds: jobs, their failures, and the queues.
func contents(t *testing.T, db *sql.DB) []string {
	t.Helper()
	all := dump(t, db, "jobs ORDER BY id", kept...)
	all = append(all, dump(t, db, "deliveries ORDER BY message_id, deliveries.delivery", "message_id", "delivery", "attempt", "outcome", "error", "worker")...)
	return append(all, dump(t, db, "queues ORDER BY name", "name", "ready", "delayed", "leased", "acked", "failed", "paused", "keep_acked")...)
}

func TestAReleasedFileBecomesWhatAFreshOneIs(t *testing.T) {
	fresh := openFile(t)
	up(t, fresh)
	for _, name := range releasedFixtures(t) {
		t.Run(name, func(t *testing.T) {
			db := openFixture(t, name)
			before, objects := contents(t, db), schema(t, db)
			version, err := strconv.ParseInt(filepath.Base(name), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "the fixture's version", []string{fmt.Sprint(version)}, dump(t, db, "goose_db_version", "max(version_id)"))
			for range 2 {
				up(t, db)
				equal(t, "contents after up", before, contents(t, db))
				equal(t, "schema", schema(t, fresh), schema(t, db))
				checkCounters(t, db)
				downTo(t, db, version)
				equal(t, "contents after down", before, contents(t, db))
				equal(t, "the schema it was released with", objects, schema(t, db))
			}
		})
	}
}
