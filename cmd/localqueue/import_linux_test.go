package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTransfersToAFullDiskSaySoInOneDocument(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("no small disk can be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p := newPlace(t)
	lines := filepath.Join(t.TempDir(), "jobs.jsonl")
	if err := os.WriteFile(lines, []byte(strings.Repeat(`{"text":"`+strings.Repeat("x", 3000)+`"}`+"\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(exitDone, "import", "--name", "x", lines)

	failed := func(args ...string) errorDoc {
		t.Helper()
		_, said := p.run(exitError, args...)
		var doc errorDoc
		if err := json.Unmarshal([]byte(said), &doc); err != nil || doc.Code != "disk_full" {
			t.Fatalf("%v: want one document that the disk is full: %s", err, said)
		}
		return doc
	}
	doc := failed("export", "--out", filepath.Join(disk, "jobs.jsonl"), "--json")
	if !strings.Contains(doc.Error, "--resume goes on") {
		t.Error(doc.Error)
	}
	if err := os.Remove(filepath.Join(disk, "jobs.jsonl.part")); err != nil {
		t.Fatal(err)
	}
	full := place{t, filepath.Join(disk, "data")}
	doc = failed("import", "--name", "x", lines, "--dir", full.dir, "--json")
	if strings.Contains(doc.Error, "nothing was stored") || doc.Stored == nil || *doc.Stored == 0 {
		t.Errorf("%+v: want how many were stored, and no other word of that", doc)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=30m"); err != nil {
		t.Fatal(err)
	}
	p.run(exitDone, "import", "--name", "x", lines, "--dir", full.dir)
	if st, err := full.queue().Stats(context.Background()); err != nil || st.Ready != 1000 {
		t.Errorf("%+v, %v: want the rest, and nothing twice", st, err)
	}
}
