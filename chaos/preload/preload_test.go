package preload_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mattn/go-sqlite3"
	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/chaos/preload"
)

// The child is this test binary again; CHILD names what it does in the directory CHILD_DIR.
var children = map[string]func(*sql.DB) error{"record": childRecords, "fail": childFails, "torn": childTears}

func TestMain(m *testing.M) {
	if role := os.Getenv("CHILD"); role != "" {
		db, err := sql.Open("sqlite3", filepath.Join(os.Getenv("CHILD_DIR"), "test.db")+"?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=10000")
		if err == nil {
			db.SetMaxOpenConns(1)
			err = children[role](db)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // leaves the files as they are, which a close would tidy up
	}
	goleak.VerifyTestMain(m)
}

func child(t *testing.T, role, dir string, env []string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "CHILD="+role, "CHILD_DIR="+dir)...)
	cmd.Stderr = &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func wait(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v: %s", err, cmd.Stderr)
	}
}

func exec1(db *sql.DB, query string) error {
	_, err := db.ExecContext(context.Background(), query)
	return err
}

func childRecords(db *sql.DB) error {
	marks, err := preload.OpenMarks()
	if err != nil {
		return err
	}
	if err := exec1(db, "CREATE TABLE IF NOT EXISTS t (v)"); err != nil {
		return err
	}
	for i := range 50 {
		if err := exec1(db, fmt.Sprintf("INSERT INTO t VALUES (hex(randomblob(%d)))", 100*i)); err != nil {
			return err
		}
		if err := marks.Mark(fmt.Appendf(nil, "inserted %d", i)); err != nil {
			return err
		}
	}
	return exec1(db, "PRAGMA wal_checkpoint(PASSIVE)")
}

func TestTheRecordsOfTwoProcessesMakeUpTheirFiles(t *testing.T) {
	lib, dir := preload.Build(t), t.TempDir()
	log := filepath.Join(t.TempDir(), "log")
	env := lib.Env(preload.Options{Dir: dir, Log: log})
	one, other := child(t, "record", dir, env), child(t, "record", dir, env)
	wait(t, one)
	wait(t, other)
	records, err := preload.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	files, names := map[uint64][]byte{}, map[string]uint64{}
	for _, r := range records {
		switch r.Kind {
		case preload.Created:
			names[r.Name] = r.Inode
		case preload.Wrote:
			files[r.Inode] = grow(files[r.Inode], r.Offset+int64(len(r.Data)))
			copy(files[r.Inode][r.Offset:], r.Data)
		case preload.Truncated:
			files[r.Inode] = grow(files[r.Inode], r.Offset)[:r.Offset]
		}
	}
	for _, name := range []string{"test.db", "test.db-wal"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 || !bytes.Equal(got, files[names[name]]) {
			t.Errorf("%s has %d bytes; what was recorded makes %d bytes, or others", name, len(got), len(files[names[name]]))
		}
	}
}

func grow(b []byte, size int64) []byte {
	return append(b, make([]byte, max(0, size-int64(len(b))))...)
}

func TestAMarkStandsBehindTheWriteAndTheSyncOfItsCommit(t *testing.T) {
	lib, dir := preload.Build(t), t.TempDir()
	log := filepath.Join(t.TempDir(), "log")
	wait(t, child(t, "record", dir, lib.Env(preload.Options{Dir: dir, Log: log})))
	records, err := preload.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	wrote, synced, marks, directory := false, false, 0, false
	for _, r := range records {
		switch {
		case r.Kind == preload.Wrote && r.Name == "test.db-wal":
			wrote, synced = true, false
		case r.Kind == preload.Synced && r.Name == "test.db-wal":
			synced = wrote
		case r.Kind == preload.Synced && r.Name == ".":
			directory = true
		case r.Kind == preload.Mark:
			if want := fmt.Sprintf("inserted %d", marks); string(r.Data) != want || !wrote || !synced {
				t.Fatalf("mark %q for %q; written before it: %v, synced after that: %v", r.Data, want, wrote, synced)
			}
			marks, wrote = marks+1, false
		}
	}
	if marks != 50 || !directory {
		t.Errorf("%d marks, a sync of the directory: %v", marks, directory)
	}
}

// childFails fails each write and each sync of an insert in turn.
func childFails(db *sql.DB) error {
	control, err := preload.OpenControl()
	if err != nil {
		return err
	}
	if err := exec1(db, "CREATE TABLE t (v)"); err != nil {
		return err
	}
	for _, sticky := range []bool{false, true} {
		for k := uint64(1); ; k++ {
			control.Arm(preload.Fault{Calls: preload.Write | preload.Sync, Files: preload.WAL, Nth: k, Errno: syscall.EIO, Sticky: sticky})
			failed := exec1(db, "INSERT INTO t VALUES (randomblob(10000))")
			control.Disarm()
			seen, fired := control.Seen(), control.Fired()
			if fired == 0 {
				if failed != nil || seen < 3 || k != seen+1 {
					return fmt.Errorf("after %d faults nothing fails but %w; %d calls", k-1, failed, seen)
				}
				break
			}
			var e sqlite3.Error
			if !errors.As(failed, &e) || e.Code != sqlite3.ErrIoErr || e.SystemErrno != syscall.EIO || seen < k || !sticky && fired != 1 {
				return fmt.Errorf("call %d fails: %w; %d seen, %d fired, sticky: %v", k, failed, seen, fired, sticky)
			}
		}
	}
	control.Arm(preload.Fault{Calls: preload.Write, Files: preload.DB, Nth: 1, Errno: syscall.EIO})
	if err := exec1(db, "INSERT INTO t VALUES (1)"); err != nil || control.Seen() != 0 {
		return fmt.Errorf("a commit to the WAL meets a fault of the file: %w", err)
	}
	control.Arm(preload.Fault{Calls: preload.Sync, Files: preload.AnyFile})
	if err := exec1(db, "INSERT INTO t VALUES (1)"); err != nil || control.Seen() != 1 || control.Fired() != 0 {
		return fmt.Errorf("counting only: %d syncs, %w", control.Seen(), err)
	}
	return nil
}

// childTears lets half of a write through.
func childTears(db *sql.DB) error {
	control, err := preload.OpenControl()
	if err != nil {
		return err
	}
	if err := exec1(db, "CREATE TABLE t (v)"); err != nil {
		return err
	}
	control.Arm(preload.Fault{Calls: preload.Write, Files: preload.WAL, Nth: 2, Errno: syscall.ENOSPC, Torn: true})
	err = exec1(db, "INSERT INTO t VALUES (randomblob(10000))")
	control.Disarm()
	if err == nil || !strings.Contains(err.Error(), "full") || control.Fired() != 2 {
		return fmt.Errorf("a torn write on a full disk gives: %w; %d fired", err, control.Fired())
	}
	if err := exec1(db, "INSERT INTO t VALUES (1)"); err != nil {
		return fmt.Errorf("after it: %w", err)
	}
	return nil
}

func TestTheNthCallFails(t *testing.T) {
	lib, dir, control := preload.Build(t), t.TempDir(), preload.NewControl(t)
	wait(t, child(t, "fail", dir, lib.Env(preload.Options{Dir: dir, Control: control})))
	if control.Seen() == 0 {
		t.Error("the parent doesn't see what the child counted")
	}
}

func TestATornWriteIsHalfDone(t *testing.T) {
	lib, dir := preload.Build(t), t.TempDir()
	log := filepath.Join(t.TempDir(), "log")
	wait(t, child(t, "torn", dir, lib.Env(preload.Options{Dir: dir, Log: log, Control: preload.NewControl(t)})))
	records, err := preload.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Kind == preload.Wrote && r.Name == "test.db-wal" && len(r.Data) == 2048 {
			return
		}
	}
	t.Error("no write of half a page was recorded")
}

func TestALogMayEndInTheMiddleOfARecordButNotHaveOtherThings(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("LOCALQUEUE_PRELOAD_LOG", log)
	marks, err := preload.OpenMarks()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := marks.Mark([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := marks.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(text) + 1 {
		if err := os.WriteFile(log, text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		records, err := preload.ReadLog(log)
		if err != nil || len(records) != cut*2/len(text) {
			t.Fatalf("%d of %d bytes: %d records, %v", cut, len(text), len(records), err)
		}
	}
	if err := os.WriteFile(log, append(text, make([]byte, 100)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if records, err := preload.ReadLog(log); err == nil || len(records) != 2 {
		t.Errorf("a log with zeros at its end: %d records, %v", len(records), err)
	}
}

func TestAProcessStartedWithoutTheLibrarySaysSo(t *testing.T) {
	if _, err := preload.OpenControl(); err == nil {
		t.Error("a control was found")
	}
	if _, err := preload.OpenMarks(); err == nil {
		t.Error("a log was found")
	}
}
