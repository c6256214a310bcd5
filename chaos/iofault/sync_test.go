package iofault

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/localqueue/localqueue/chaos/powercut"
	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

// What Linux can't write it drops, and tells so once: the next sync succeeds without it. What is answered after that must be
// on the disk all the same.
func TestAPutAfterAFailedSyncIsOnTheDisk(t *testing.T) {
	t.Parallel()
	lib := preload.Build(t)
	files, err := bed()
	ok(t, err)
	f := preload.Fault{Calls: preload.Sync, Files: preload.WAL, Nth: 1, Errno: syscall.EIO}
	for ; !t.Failed(); f.Nth++ {
		dir, log := copyBed(t), filepath.Join(place(t), "log")
		child := startChild(t, lib.Env(preload.Options{Dir: dir, Log: log, Control: preload.NewControl(t)})...)
		must(t, child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full}))
		r := child.does(t, order{Do: "series", Op: "a few puts", Fault: &f})
		child.kill(t)
		if r.Fired == 0 {
			break
		}
		left := place(t)
		ok(t, cutPower(t, files, log).Write(left))
		survey(t, left)
		eachAgrees(t, left, f, r)
	}
	if f.Nth <= 3 {
		t.Errorf("only %d syncs could fail", f.Nth-1)
	}
}

// cutPower is what a power cut leaves after everything in a log, in which a failed sync drops what it was to write.
func cutPower(t *testing.T, before powercut.Image, log string) powercut.Image {
	t.Helper()
	records, err := preload.ReadLog(log)
	ok(t, err)
	disk := powercut.NewDisk(before)
	var unsynced []preload.Record // of the WAL
	apply := func(all ...preload.Record) {
		for _, r := range all {
			ok(t, disk.Apply(r))
		}
	}
	for _, r := range records {
		switch wal := strings.HasSuffix(r.Name, "-wal"); {
		case r.Kind == preload.Mark && string(r.Data) == failedMark:
			unsynced = nil
		case wal && (r.Kind == preload.Wrote || r.Kind == preload.Truncated):
			unsynced = append(unsynced, r)
		case wal && r.Kind == preload.Synced:
			apply(unsynced...)
			apply(r)
			unsynced = nil
		default:
			apply(r)
		}
	}
	return disk.Crash(powercut.Nothing, nil)
}
