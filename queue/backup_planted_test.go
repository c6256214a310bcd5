//go:build planted

package queue_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

func init() {
	roles["backup"] = func() {
		s, err := queue.Open(os.Getenv(dirEnv))
		if err == nil {
			_, err = s.Backup(context.Background(), os.Getenv(backupEnv), queue.BackupOptions{})
		}
		fmt.Println("done:", err)
	}
}

// dies starts a role that kills itself at a point, and returns when it has.
func dies(t *testing.T, role, at, backup, dir string) {
	t.Helper()
	p := startAs(t, role, backupEnv+"="+backup, dirEnv+"="+dir, "LOCALQUEUE_KILL="+at)
	_, _ = fmt.Fprintln(p.in, "go on") // if it lives long enough to ask
	for said := p.hears(); said != ""; said = p.hears() {
		if strings.HasPrefix(said, "done") {
			t.Fatalf("%s has not died at %s: %s", role, at, said)
		}
	}
}

func TestAKilledBackupLeavesOnlyWhatSaysThatItIsUnfinished(t *testing.T) {
	for _, at := range []string{"in-backup:1", "in-backup:3", "before-rename:1"} {
		t.Run(at, func(t *testing.T) {
			base := t.TempDir()
			dir, dest := filepath.Join(base, "q"), filepath.Join(base, "backup")
			s := filledQueue(t, dir)
			dies(t, "backup", at, dest, dir)
			left := names(t, base)
			if len(left) != 2 || !strings.HasPrefix(left[0], "backup.partial-") {
				t.Fatalf("it has left %q", left)
			}
			ok(t, second(s.Default().Put(t.Context(), nil)))
			ok(t, second(s.Backup(t.Context(), dest, queue.BackupOptions{})))
			same(t, "names", []string{"backup", "q"}, names(t, base))
			sound(t, dest)
			sound(t, dir)
		})
	}
}

func TestAKilledRestoreLeavesAWholeQueue(t *testing.T) {
	backup := backupOf(t, 3)
	for _, c := range []struct {
		at   string
		left int // whole copies that have got a name
	}{{"in-backup:1", 0}, {"before-rename:1", 0}, {"before-rename:2", 1}} {
		t.Run(c.at, func(t *testing.T) {
			dir := queueWith(t, 1)
			dies(t, "replace", c.at, backup, dir)
			same(t, "jobs", int64(1), ready(t, dir))
			aside, err := filepath.Glob(dir + ".replaced-*")
			ok(t, err)
			same(t, "copies", c.left, len(aside))
			for _, d := range aside {
				same(t, "jobs in the copy", int64(3), ready(t, d))
			}
			info := restore(t, backup, dir, queue.RestoreOptions{Replace: true})
			same(t, "jobs now", int64(3), ready(t, dir))
			same(t, "jobs before", int64(1), ready(t, info.Replaced))
		})
	}
	t.Run("where there is no queue", func(t *testing.T) {
		for _, at := range []string{"in-backup:1", "before-rename:1"} {
			for name, dir := range map[string]string{"missing": filepath.Join(t.TempDir(), "new"), "empty": t.TempDir()} {
				dies(t, "replace", at, backup, dir)
				_, err := queue.Open(dir, queue.MustExist())
				if matches(t, err, queue.ErrNoQueue); name == "missing" {
					_, err = os.Stat(dir)
					matches(t, err, os.ErrNotExist)
				}
				restore(t, backup, dir, queue.RestoreOptions{})
				same(t, "jobs", int64(3), ready(t, dir))
			}
		}
	})
}
