package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

// What can't be provoked here: a network file system, a disk that fails, a build that doesn't sync.
func TestWhatNoTestCanProvokeIsJudgedByTheFacts(t *testing.T) {
	sound := queue.Facts{At: time.Now(), Schema: 2, NewestSchema: 2, Journal: "wal", Durability: queue.Balanced, SyncedLevel: "full", FileSystem: "ext4", FreeBytes: 1 << 40, Directory: queue.FileFact{UID: -1}}
	for _, c := range []struct {
		name   string
		change func(f *queue.Facts)
		want   []Code
	}{
		{"nothing", func(*queue.Facts) {}, nil},
		{"a network file system", func(f *queue.Facts) { f.FileSystem, f.Network = "nfs", true }, []Code{NetworkFS}},
		{"commits that aren't synced", func(f *queue.Facts) { f.SyncedLevel = "normal" }, []Code{SyncLevel}},
		{"commits that needn't be", func(f *queue.Facts) { f.SyncedLevel, f.Durability = "normal", queue.Normal }, nil},
		{"a disk that fails", func(f *queue.Facts) { f.Err = fmt.Errorf("read: %w", queue.ErrIO) }, []Code{Unreadable}},
		{"a disk that fails on a write", func(f *queue.Facts) { f.WriteErr = fmt.Errorf("write: %w", queue.ErrIO) }, []Code{Unreadable}},
		{"a stopped process that holds the write lock", func(f *queue.Facts) {
			f.WriteErr, f.Holder, f.Openers = queue.ErrBusy, 7, []queue.Opener{{PID: 7, Stores: 1, Stopped: true}}
		}, []Code{Busy, StoppedProcess}},
		{"a stopped restore", func(f *queue.Facts) {
			f.Restoring, f.Openers = true, []queue.Opener{{PID: 7, Stores: 1, Stopped: true}}
		}, []Code{Restoring, StoppedProcess}},
		{"a full disk", func(f *queue.Facts) { f.WriteErr = queue.ErrDiskFull }, []Code{DiskFull}},
	} {
		f := sound
		f.FileBytes = 1 << 20
		c.change(&f)
		var got []Code
		for _, found := range judge(&f) {
			got = append(got, found.Code)
			if found.Severity != Problem {
				t.Errorf("%s: %+v", c.name, found)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Somebody's Ctrl-Z harms nobody: its leases end.
func TestAStoppedProcessThatHoldsNothingIsNoted(t *testing.T) {
	f := queue.Facts{At: time.Now(), Journal: "wal", FileSystem: "ext4", FreeBytes: 1 << 40, Directory: queue.FileFact{UID: -1},
		Holder: 8, Openers: []queue.Opener{{PID: 7, Stores: 1, Stopped: true}, {PID: 8, Stores: 1}}}
	found := judge(&f)
	if len(found) != 1 || found[0].Code != StoppedProcess || found[0].Severity != Note || !strings.Contains(found[0].Advice, "kill -CONT 7") {
		t.Errorf("%+v", found)
	}
}

func TestASentenceListsAFewNamesOnly(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprint(i))
	}
	if diff := cmp.Diff("0, 1, 2, 3, 4, and 995 more", list(names)); diff != "" {
		t.Error(diff)
	}
}
