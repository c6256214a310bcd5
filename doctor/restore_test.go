package doctor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

func TestARestoreThatDoesNotEndIsAProblemAndNamed(t *testing.T) {
	dir, backup := made(t, nil), filepath.Join(t.TempDir(), "backup")
	fill(t, dir, func(s *queue.Store) {
		_, err := s.Backup(context.Background(), backup, queue.BackupOptions{})
		ok(t, err)
	})
	looks := 0
	look := func(done, total int) {
		if looks++; looks > 1 {
			return
		}
		r := examine(t, dir, queue.WithBusyTimeout(20*time.Millisecond))
		if diff := cmp.Diff([]string{"problem restoring"}, codes(r)); diff != "" {
			t.Errorf("findings (-want +got):\n%s%+v", diff, r.Findings)
		} else if want := onLinux(fmt.Sprintf("process %d kept", os.Getpid()), "a process kept"); !strings.Contains(r.Findings[0].Text, want) {
			t.Errorf("the finding says %q, not %q", r.Findings[0].Text, want)
		}
	}
	_, err := queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{Replace: true, Progress: look})
	ok(t, err)
	if looks == 0 {
		t.Fatal("the restore told of no progress")
	}
	if r := examine(t, dir); !r.Healthy() {
		t.Errorf("after it: %+v", r.Findings)
	}
}
