package queue

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pragmasOf reads what is set on a connection.
func pragmasOf(t *testing.T, conn *sql.Conn, names map[string]string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for name := range names {
		v, err := pragmaText(context.Background(), conn, name)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = v
	}
	return got
}

func TestCase02_EveryConnectionOfAPoolHasItsPragmas(t *testing.T) {
	s, err := Open(t.TempDir(), WithBusyTimeout(1234*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	reader := map[string]string{"busy_timeout": "1234", "temp_store": "2", "query_only": "1", "journal_mode": "wal", "cache_size": "-4000"}
	writer := map[string]string{"busy_timeout": "0", "temp_store": "2", "synchronous": "1", "journal_mode": "wal", "journal_size_limit": "16777216",
		"wal_autocheckpoint": "8000", "page_size": pageSize}
	all := func(round string) {
		t.Helper()
		var conns []*sql.Conn
		for range 8 {
			conn, err := s.reader.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		for i, conn := range conns {
			if diff := cmp.Diff(reader, pragmasOf(t, conn, reader)); diff != "" {
				t.Errorf("%s: reading connection %d (-want +got):\n%s", round, i, diff)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(writer, pragmasOf(t, s.w.conn, writer)); diff != "" {
			t.Errorf("%s: writing connection (-want +got):\n%s", round, diff)
		}
	}
	s.reader.SetMaxOpenConns(8)
	s.reader.SetMaxIdleConns(8)
	all("at first")
	s.reader.SetConnMaxLifetime(time.Nanosecond)
	all("while they are recycled")
	if err := s.w.reconnect(); err != nil {
		t.Fatal(err)
	}
	all("after the writer was replaced")
	for _, d := range []struct {
		full  bool
		level string
	}{{true, "2"}, {false, "1"}} {
		if err := s.w.setSync(d.full); err != nil {
			t.Fatal(err)
		}
		if got := pragmasOf(t, s.w.conn, map[string]string{"synchronous": ""})["synchronous"]; got != d.level {
			t.Errorf("synchronous is %s, want %s", got, d.level)
		}
	}
}
