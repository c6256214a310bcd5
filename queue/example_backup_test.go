package queue_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/localqueue/localqueue/queue"
)

// A backup is a queue like any other: it can be opened, and looked at.
func ExampleStore_Backup() {
	store, done := exampleStore()
	defer done()
	_, err := store.Default().Put(ctx, []byte("kept"))
	check(err)

	backups, err := os.MkdirTemp("", "localqueue-backups-")
	check(err)
	defer func() { check(os.RemoveAll(backups)) }()
	info, err := store.Backup(ctx, filepath.Join(backups, "monday"), queue.BackupOptions{})
	check(err)

	saved, err := queue.Open(info.Dir)
	check(err)
	defer func() { check(saved.Close()) }()
	stats, err := saved.Default().Stats(ctx)
	check(err)
	fmt.Println(filepath.Base(info.Dir), stats.Ready)
	// Output: monday 1
}

// A queue is put back as it was. What was there is kept aside; nobody may have it open.
func ExampleRestore() {
	base, err := os.MkdirTemp("", "localqueue-example-")
	check(err)
	defer func() { check(os.RemoveAll(base)) }()
	dir, backup := filepath.Join(base, "data"), filepath.Join(base, "monday")

	store, err := queue.Open(dir)
	check(err)
	_, err = store.Default().Put(ctx, []byte("precious"))
	check(err)
	_, err = store.Backup(ctx, backup, queue.BackupOptions{})
	check(err)
	job, err := store.Default().Get(ctx)
	check(err)
	check(job.Ack(ctx)) // by mistake
	check(store.Close())

	info, err := queue.Restore(ctx, backup, dir, queue.RestoreOptions{Replace: true})
	check(err)
	store, err = queue.Open(dir)
	check(err)
	defer func() { check(store.Close()) }()
	job, err = store.Default().Get(ctx)
	check(err)
	fmt.Println(string(job.Payload), info.Replaced != "")
	// Output: precious true
}
