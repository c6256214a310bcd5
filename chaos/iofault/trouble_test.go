package iofault

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// trouble is something wrong with the directory for a while.
type trouble struct {
	name  string
	place func(t testing.TB) string                    // where it can come; skips the test where it can't
	come  func(t *testing.T, dir string) (goes func()) // it comes, under an open Store
	tells []string                                     // the sentinels that an operation may tell it by
	deaf  bool                                         // operations may succeed all the same, also those that write
}

var troubles = []trouble{
	{"a full disk", smallDisk, fillDisk, []string{"ErrDiskFull"}, true},
	{"a file that was removed", place, func(t *testing.T, dir string) func() {
		return moved(t, filepath.Join(dir, dbFile))
	}, []string{"ErrReplaced"}, false},
	{"a file that was replaced by another queue's", place, func(t *testing.T, dir string) func() {
		files, err := bed()
		ok(t, err)
		return replaced(t, filepath.Join(dir, dbFile), files[dbFile])
	}, []string{"ErrReplaced"}, false},
	{"a file that was replaced by a text", place, func(t *testing.T, dir string) func() {
		return replaced(t, filepath.Join(dir, dbFile), []byte("no database"))
	}, []string{"ErrReplaced"}, false},
	{"a directory that was moved", place, moved, []string{"ErrReplaced"}, false},
}

// smallDisk mounts a disk of 2 MB.
func smallDisk(t testing.TB) string {
	t.Helper()
	disk := place(t)
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("no small disk can be mounted here: ", err)
	}
	t.Cleanup(func() { ok(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	return disk
}

// fillDisk leaves no room on the disk of a directory.
func fillDisk(t *testing.T, dir string) (goes func()) {
	t.Helper()
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); errors.Is(err, unix.ENOSPC) {
		return func() { ok(t, os.Remove(filler)) }
	}
	t.Fatal("the disk doesn't get full")
	return nil
}

func moved(t *testing.T, path string) (back func()) {
	t.Helper()
	ok(t, os.Rename(path, path+".away"))
	return func() { ok(t, os.Rename(path+".away", path)) }
}

func replaced(t *testing.T, path string, by []byte) (back func()) {
	t.Helper()
	back = moved(t, path)
	ok(t, os.WriteFile(path, by, 0o600))
	return back
}

func TestAnOperationInTroubleTellsItAndResumesAfterIt(t *testing.T) {
	for _, tr := range troubles {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			base, child := tr.place(t), startChild(t)
			tried, told := 0, 0
			for _, op := range operations {
				t.Run(op.name, func(t *testing.T) {
					dir := filepath.Join(base, "q")
					ok(t, os.Mkdir(dir, 0o700))
					defer func() { ok(t, os.RemoveAll(dir)) }()
					layBed(t, dir)
					tried++
					if tryInTrouble(t, child, dir, tr, op).Err != "" {
						told++
					}
				})
			}
			if tried > 0 && told == 0 {
				t.Error("no operation has told it")
			}
		})
	}
}

func tryInTrouble(t *testing.T, child *process, dir string, tr trouble, op operation) report {
	t.Helper()
	must(t, child.does(t, order{Do: "open", Dir: dir, Durability: "full"}))
	goes := tr.come(t, dir)
	r := child.does(t, order{Do: "run", Op: op.name})
	goes()
	if r.Err == "" && op.changes != nothing && !tr.deaf {
		t.Error("it isn't noticed")
	}
	if r.Err != "" && !slices.ContainsFunc(tr.tells, r.is) {
		t.Errorf("%v: it doesn't tell the trouble", r.answer)
	}
	for late := time.Now().Add(patience); ; { // what was noticed is believed for some milliseconds
		next := child.does(t, order{Do: "next"})
		if next.Err == "" {
			break
		}
		if !next.is("ErrReplaced") || time.Now().After(late) {
			t.Fatalf("it doesn't resume: %v", next.answer)
		}
	}
	must(t, child.does(t, order{Do: "close"}))
	agrees(t, op, r.answer, survey(t, dir))
	return r
}
