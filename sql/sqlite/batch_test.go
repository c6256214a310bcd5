package sqlite_test

import (
	"database/sql"
	"slices"
	"testing"
)

func named(t *testing.T, name string) query {
	t.Helper()
	all := allQueries(t)
	i := slices.IndexFunc(all, func(q query) bool { return q.name == name })
	if i < 0 {
		t.Fatalf("no query %s", name)
	}
	return all[i]
}

func TestTheIDsOfABatchFollowEachOtherAndTheLastOneIsTold(t *testing.T) {
	db := openFile(t)
	up(t, db)
	put := func() (last int64) {
		t.Helper()
		result, err := db.Exec(named(t, "PutMany").text, sql.Named("queue", "mail"), sql.Named("payloads", []byte("abbccc")), sql.Named("max_attempts", 4),
			sql.Named("now", 1000), sql.Named("spans", "[1, 33554434, 100663299, 201326592]")) // a, bb, ccc and nothing
		if err != nil {
			t.Fatal(err)
		}
		if n, err := result.RowsAffected(); err != nil || n != 4 {
			t.Errorf("%d rows affected: %v", n, err) // what triggers change doesn't count
		}
		if last, err = result.LastInsertId(); err != nil {
			t.Fatal(err)
		}
		return last
	}
	want := []string{"1 X'61'", "2 X'6262'", "3 X'636363'", "4 X''"}
	last := put()
	equal(t, "jobs", want, dump(t, db, "messages ORDER BY id", "id", "payload"))
	if last != 4 {
		t.Errorf("the last id is told as %d", last)
	}
	exec(t, db, "DELETE FROM messages")
	if last = put(); last != 8 {
		t.Errorf("after a purge the last id is told as %d", last)
	}
	checkCounters(t, db)
}

func TestWhereAJobStandsFollowsWhateverAWriterChanges(t *testing.T) {
	db := openFile(t)
	up(t, db)
	stands := func(what, want string) {
		t.Helper()
		equal(t, what, []string{want}, dump(t, db, "messages", "stage", "place"))
	}
	exec(t, db, "INSERT INTO messages (queue, payload, status, max_attempts, available_at, created_at, updated_at, priority) VALUES ('mail', '', 0, 4, 10, 10, 10, 7)")
	stands("ready", "0 -7")
	exec(t, db, "UPDATE messages SET status = 1, lease_until = 90, updated_at = 20")
	stands("leased", "1 90")
	exec(t, db, "UPDATE messages SET lease_until = NULL")
	stands("leased without an end", "1 NULL")
	exec(t, db, "UPDATE messages SET status = 0, available_at = 50, updated_at = 30") // the original's nack with a delay
	stands("delayed", "-1 50")
	exec(t, db, "UPDATE messages SET status = 3, updated_at = 40") // delayed is still set
	stands("failed", "3 40")
	exec(t, db, "UPDATE messages SET status = 2, updated_at = 45")
	stands("acked", "2 45")
	equal(t, "integrity", []string{"'ok'"}, dump(t, db, "pragma_integrity_check", "integrity_check"))
}
