//go:build unix

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/cmd/localqueue/internal/safe"
	"github.com/localqueue/localqueue/queue"
)

type backupDoc struct {
	Backup string `json:"backup"`
	Bytes  int64  `json:"bytes"`
	At     string `json:"at"`
}

func backupCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DEST",
		Short: "Copy the queue, as it is in one moment, into the new directory DEST while others use it",
		Long: `Copy the queue, as it is in one moment, into the new directory DEST while others use it.

DEST must not exist. The copy is checked in full and synced before it is called DEST; until then it is DEST.partial-N. Its
restore is localqueue restore DEST.`,
		Args: oneDir("backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.existing(func(q *queue.Queue) error {
				report, finish := copyProgress(a)
				info, err := q.Store().Backup(cmd.Context(), args[0], queue.BackupOptions{Progress: report})
				finish()
				if err != nil {
					return err
				}
				return a.print(backupDoc{Backup: info.Dir, Bytes: info.Bytes, At: instant(info.At)}, "%s: %d bytes\n", safe.Line(info.Dir), info.Bytes)
			})
		},
	}
}

type restoreDoc struct {
	Restored string  `json:"restored"`
	Bytes    int64   `json:"bytes"`
	Replaced *string `json:"replaced"` // where the old queue is; null if there was none
}

func restoreCmd(a *app) *cobra.Command {
	var opts queue.RestoreOptions
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Make the queue in --dir from a backup, or from any closed queue",
		Long: `Make the queue in --dir from a backup, or from any closed queue.

There must be no queue in --dir, unless --replace is given: then nobody may have it open, and its directory is renamed to
DIR.replaced-TIME, with all that is in it. BACKUP is only read.`,
		Args: oneDir("restore"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDir("--dir", a.dir); err != nil {
				return err
			}
			var finish func()
			opts.Progress, finish = copyProgress(a)
			info, err := queue.Restore(cmd.Context(), args[0], a.dir, opts, a.storeOptions(false)...)
			finish()
			switch {
			case errors.Is(err, queue.ErrNoQueue): // where it is to come from
				return failf(queue.ErrNoQueue, "%v; name the directory that backup has made", err)
			case errors.Is(err, queue.ErrBusy): // it doesn't wait
				return failf(queue.ErrBusy, "%v", err)
			case errors.Is(err, queue.ErrExists) && !opts.Replace:
				return failf(queue.ErrExists, "%v (--replace)", err)
			case err != nil:
				return err
			}
			doc := restoreDoc{Restored: info.Dir, Bytes: info.Bytes, Replaced: orNull(info.Replaced)}
			if info.Replaced == "" {
				return a.print(doc, "%s: %d bytes\n", safe.Line(info.Dir), info.Bytes)
			}
			return a.print(doc, "%s: %d bytes; what was there before is %s\n", safe.Line(info.Dir), info.Bytes, safe.Line(info.Replaced))
		},
	}
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "replace the queue in --dir; its directory is renamed, not removed")
	return cmd
}

// oneDir takes the name of a directory.
func oneDir(verb string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usagef("%s takes the name of one directory (see %s --help)", verb, cmd.CommandPath())
		}
		return checkDir(verb, args[0])
	}
}

// copyProgress shows how much of a file is copied, and that it is checked then.
func copyProgress(a *app) (report func(done, total int), finish func()) {
	p := newProgress(a, "copying pages", true)
	if p.bar == nil {
		return nil, p.finish
	}
	return func(done, total int) {
		p.bar.ChangeMax(total + 1) // the check is the last step
		_ = p.bar.Set(done)        // stderr is the last resort
		if done == total {
			p.bar.Describe("checking the copy")
		}
	}, p.finish
}
