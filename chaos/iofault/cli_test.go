package iofault

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// command builds the command for this test.
func command(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "localqueue")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/localqueue").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// verbs are the command lines that use a queue, on the directory that populate fills; RECEIPT is that of the first job.
var verbs = []string{
	"put x", "put --lines", "get", "get --wait 10ms", "ack 1 --receipt RECEIPT", "nack 1 --receipt RECEIPT", "fail 1 --receipt RECEIPT",
	"release 1 --receipt RECEIPT", "extend 1 --receipt RECEIPT --for 1m", "work --until-empty -- true", "work --until-drained -- true",
	"stats", "queues", "list", "show 1", "peek", "cancel 1", "delete 8", "delete --state failed", "pause", "resume", "reclaim", "retry 6",
	"retry --all", "run 12", "check", "check --quick", "migrate status", "migrate up", "purge --older-than 0s", "set --keep-acked 1h", "vacuum",
}

// obstacle is what is wrong with a directory when a command comes to it.
type obstacle struct {
	name  string
	place func(t testing.TB) string
	come  func(t *testing.T, dir string) (goes func())
	codes []string // of the error, as --json prints it
	some  bool     // commands may also do their work, as long as that is true
}

var obstacles = []obstacle{
	{"a full disk", smallDisk, fillDisk, []string{"disk_full"}, true},
	{"a read-only disk", smallDisk, writeProtect, []string{"read_only"}, false},
	{"another program's file", place, written(func(t *testing.T, path string) {
		ok(t, os.Remove(path))
		inSQLite(t, path, "CREATE TABLE people (name TEXT)")
	}), []string{"foreign_file"}, false},
	{"a text", place, written(func(t *testing.T, path string) {
		ok(t, os.WriteFile(path, []byte(strings.Repeat("no database. ", 1000)), 0o600))
	}), []string{"corrupt"}, false},
	{"a newer schema", place, written(func(t *testing.T, path string) {
		inSQLite(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (900, 1)")
	}), []string{"newer_schema"}, false},
	{"a damaged header", place, written(func(t *testing.T, path string) {
		overwrite(t, path, 0, bytes.Repeat([]byte{0xa5}, 100))
	}), []string{"corrupt"}, false},
	{"a damaged table", place, written(func(t *testing.T, path string) {
		for _, tr := range trees(t, path) {
			if tr.name == "messages" {
				overwrite(t, path, tr.from, bytes.Repeat([]byte{0xa5}, int(tr.to-tr.from)))
			}
		}
	}), []string{"corrupt", "unhealthy"}, true},
}

// written is an obstacle that lies in the file itself; it goes when the file is what it was.
func written(write func(t *testing.T, path string)) func(*testing.T, string) func() {
	return func(t *testing.T, dir string) func() {
		path := filepath.Join(dir, dbFile)
		write(t, path)
		return func() {
			for _, name := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(path + name)
			}
			layBed(t, dir)
		}
	}
}

// writeProtect makes the disk of a directory read-only.
func writeProtect(t *testing.T, dir string) (goes func()) {
	t.Helper()
	disk := filepath.Dir(dir)
	// A process that another test is just starting has our files open for a moment.
	err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
	for late := time.Now().Add(patience); errors.Is(err, unix.EBUSY) && time.Now().Before(late); {
		err = unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	ok(t, err)
	return func() { ok(t, unix.Mount("", disk, "", unix.MS_REMOUNT, "")) }
}

func inSQLite(t *testing.T, path string, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	ok(t, err)
	_, err = db.Exec(statement)
	ok(t, errors.Join(err, db.Close()))
}

func TestACommandInTroubleSaysSoAndExitsWith1(t *testing.T) {
	t.Parallel()
	bin := command(t)
	receipt := receipts(t)[leasedA]
	for _, o := range obstacles {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			base, told := o.place(t), 0
			for i, verb := range verbs {
				dir := filepath.Join(base, fmt.Sprint("q", i))
				ok(t, os.Mkdir(dir, 0o700))
				layBed(t, dir)
				goes := o.come(t, dir)
				before := sum(t, dir)
				exit, code, stderr := run(t, bin, dir, strings.ReplaceAll(verb, "RECEIPT", receipt))
				switch {
				case exit == 0 && o.some:
				case exit != 1 || !slices.Contains(o.codes, code):
					t.Errorf("%s: exit %d, code %q, want %q: %s", verb, exit, code, o.codes, stderr)
				default:
					told++
					if strings.Contains(stderr, marker) || strings.Count(stderr, "\n") != 1 {
						t.Errorf("%s: the error has a payload, or isn't one line: %s", verb, stderr)
					}
					if after := sum(t, dir); after != before {
						t.Errorf("%s failed, and yet has changed the file", verb)
					}
				}
				goes()
				if exit, _, stderr := run(t, bin, dir, "put x"); exit != 0 {
					t.Errorf("once it is over, after %s: exit %d: %s", verb, exit, stderr)
				}
				survey(t, dir)
				ok(t, os.RemoveAll(dir))
			}
			if told == 0 {
				t.Error("no command has told it")
			}
		})
	}
}

// run runs the command in a directory, and returns its exit code, its error's name, and stderr.
func run(t *testing.T, bin, dir, verb string) (exit int, code, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, append([]string{"--dir", dir, "--json"}, strings.Fields(verb)...)...)
	cmd.Stdin = strings.NewReader("a\nb\n")
	cmd.WaitDelay = time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s hangs: %s", verb, &errs)
	}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		exit = failed.ExitCode()
	} else {
		ok(t, err)
	}
	var doc struct{ Code string }
	lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
	_ = json.Unmarshal([]byte(lines[len(lines)-1]), &doc) // what is no document has no code
	return exit, doc.Code, errs.String()
}

// sum is the database's content. No process has it open.
func sum(t *testing.T, dir string) [sha256.Size]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, dbFile))
	ok(t, err)
	return sha256.Sum256(data)
}
