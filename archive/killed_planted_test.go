//go:build planted

package archive_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

// never is more batches than an import has.
const never = 1 << 30

// Where a kill hurts most: the jobs are stored and their mark isn't, both are and nobody knows of it, and around the commit.
func TestAKilledImportGoesOnFromEveryPoint(t *testing.T) {
	const jobs = 1000
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	if _, err := archive.ExportFile(t.Context(), numbered(t, jobs), file, archive.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, point := range []string{"after-begin", "in-import", "before-commit", "after-commit"} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			for nth := 1; nth <= 5; nth++ {
				if importUntil(t, dir, file, never, fmt.Sprintf("LOCALQUEUE_KILL=%s:%d", point, nth)) {
					break // it had fewer batches left
				} else if nth == 5 && !importUntil(t, dir, file, never) {
					t.Fatal("an import that nobody kills doesn't end")
				}
			}
			s := queuetest.OpenDir(t, dir, queue.MustExist())
			if diff := cmp.Diff(numbers(jobs), payloads(t, s)); diff != "" {
				t.Errorf("jobs (-want +got):\n%.2000s", diff)
			}
			sound(t, s)
		})
	}
}
