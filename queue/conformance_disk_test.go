package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

var diskCases = []fileCase{
	{"Rule42_AFullDiskSaysSoAndWorkResumesWhenThereIsRoom", func(t *testing.T) {
		disk := t.TempDir()
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=3m"); err != nil {
			t.Skip("no small disk can be mounted here: ", err)
		}
		t.Cleanup(func() { ok(t, unix.Unmount(disk, unix.MNT_DETACH)) })
		filler := filepath.Join(disk, "filler")
		ok(t, os.WriteFile(filler, make([]byte, 1<<20), 0o600))
		s := openStore(t, filepath.Join(disk, "q"))
		q := s.Default()
		stored := int64(0)
		var err error
		for range 5000 {
			if _, err = q.Put(t.Context(), []byte(repeat("x", 1500))); err != nil {
				break
			}
			stored++
		}
		matches(t, err, queue.ErrDiskFull)
		for range 3 { // and again, without harm
			if _, err := q.Put(t.Context(), []byte(repeat("x", 5000))); err == nil {
				stored++
			} else {
				matches(t, err, queue.ErrDiskFull)
			}
		}
		st, err := q.Stats(t.Context())
		ok(t, err)
		same(t, "stored", stored, st.Ready)
		_, err = q.PutMany(t.Context(), []queue.NewJob{{Payload: make([]byte, 600_000)}, {Payload: make([]byte, 600_000)}, {Payload: make([]byte, 600_000)}})
		matches(t, err, queue.ErrDiskFull)

		ok(t, os.Remove(filler))
		_, err = q.Put(t.Context(), []byte("room again"))
		ok(t, err)
		stored++
		st, err = q.Stats(t.Context())
		ok(t, err)
		same(t, "stored", stored, st.Ready)
		found, err := s.Check(t.Context(), false)
		ok(t, err)
		same(t, "findings", 0, len(found))
		for range 10 {
			j, err := q.TryGet(t.Context())
			ok(t, err)
			ok(t, j.Ack(t.Context()))
		}
	}},
	{"Rule42_OpeningOnAFullDiskSaysSo", func(t *testing.T) {
		disk := t.TempDir()
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
			t.Skip("no small disk can be mounted here: ", err)
		}
		t.Cleanup(func() { ok(t, unix.Unmount(disk, unix.MNT_DETACH)) })
		filler := filepath.Join(disk, "filler")
		if err := os.WriteFile(filler, make([]byte, 64<<10), 0o600); err != nil && !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		_, err := queue.Open(filepath.Join(disk, "q"))
		matches(t, err, queue.ErrDiskFull)
		ok(t, os.Remove(filler))
		ok(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=4m"))
		works(t, openStore(t, filepath.Join(disk, "q")))
	}},
}
