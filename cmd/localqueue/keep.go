//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/cmd/localqueue/internal/safe"
	"github.com/localqueue/localqueue/queue"
)

func purgeCmd(a *app) *cobra.Command {
	var opts queue.PurgeOptions
	cmd := &cobra.Command{
		Use:   "purge --older-than D",
		Short: "Remove acked jobs, and with --include-failed the dead letters, by age",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("older-than") {
				return usagef("--older-than is missing: say how long ago the jobs finished, 0s for any")
			}
			if err := notNegative("older-than", opts.OlderThan); err != nil {
				return err
			}
			return a.existing(func(q *queue.Queue) error {
				bar, shown := newProgress(a, "purging", true), 0
				opts.Progress = func(removed int) {
					bar.add(removed - shown)
					shown = removed
				}
				n, err := q.Purge(cmd.Context(), opts)
				bar.finish()
				if err != nil {
					return detail(err, func(d *errorDoc) { d.Queue, d.Changed = q.Name(), &n })
				}
				if n == 0 && !a.json && !known(cmd.Context(), q) {
					a.note("there is no queue %q in %s, nor was there ever one: localqueue queues lists them", q.Name(), safe.Line(a.dir))
				}
				return a.print(countDoc{Queue: q.Name(), Removed: n}, "purged %d\n", n)
			})
		},
	}
	cmd.Flags().DurationVar(&opts.OlderThan, "older-than", 0, "finished at least so long ago")
	cmd.Flags().BoolVar(&opts.Failed, "include-failed", false, "the dead letters too")
	return cmd
}

// known tells whether the queue ever had a job or a setting; true also where that can't be read.
func known(ctx context.Context, q *queue.Queue) bool {
	all, err := q.Store().Queues(ctx)
	return err != nil || slices.ContainsFunc(all, func(s queue.Stats) bool { return s.Queue == q.Name() })
}

type setDoc struct {
	Queue     string  `json:"queue"`
	KeepAcked *string `json:"keep_acked"` // null: until purged
}

func setCmd(a *app) *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use:   "set --keep-acked D|forever",
		Short: "Set how long the queue keeps acked jobs",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch keep {
			case "":
				return usagef("--keep-acked is missing: give a time like 24h, 0s to keep none, or forever")
			case "forever":
				return a.existing(func(q *queue.Queue) error {
					if err := q.KeepAckedForever(cmd.Context()); err != nil {
						return err
					}
					return a.print(setDoc{Queue: q.Name()}, "")
				})
			}
			d, err := time.ParseDuration(keep)
			if err != nil {
				return usagef("--keep-acked %q is not a time like 24h, nor forever", keep)
			}
			if err := notNegative("keep-acked", d); err != nil {
				return err
			}
			return a.existing(func(q *queue.Queue) error {
				if err := q.KeepAcked(cmd.Context(), d); err != nil {
					return err
				}
				text := d.String()
				return a.print(setDoc{Queue: q.Name(), KeepAcked: &text}, "")
			})
		},
	}
	cmd.Flags().StringVar(&keep, "keep-acked", "", "a `time` like 24h, 0s to keep none, or forever")
	return cmd
}

type vacuumDoc struct {
	Vacuumed bool  `json:"vacuumed"`
	Before   int64 `json:"before_bytes"` // of the file and its WAL
	After    int64 `json:"after_bytes"`
	WAL      int64 `json:"wal_bytes"`  // of those after
	Pinned   bool  `json:"wal_pinned"` // the WAL could not be emptied: the space is not back yet
}

func vacuumCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "vacuum",
		Short: "Give the space of removed jobs back to the file system",
		Long: `Give the space of removed jobs back to the file system, and say how much the file and its WAL had and have. Other writers
wait meanwhile. While another process reads on and on, the WAL can't be emptied, and the space comes back later: that is noted.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.existing(func(q *queue.Queue) error {
				before := bytesOnDisk(a.dir)
				if err := q.Store().Vacuum(cmd.Context()); err != nil {
					return err
				}
				after, err := queue.Inspect(cmd.Context(), a.dir, a.storeOptions(true)...)
				if err != nil {
					return failf(err, "the file is vacuumed, but what it has now can't be seen: %v", err)
				}
				doc := vacuumDoc{Vacuumed: true, Before: before, After: after.FileBytes + after.WALBytes, WAL: after.WALBytes, Pinned: walKeptAll(after)}
				if doc.Pinned && !a.json {
					a.note("the WAL could not be emptied, since another process reads: the space comes back with a later write, or another vacuum, when that has ended")
				}
				return a.print(doc, "%d bytes before, %d after\n", doc.Before, doc.After)
			})
		},
	}
}

// bytesOnDisk is what the file and its WAL have.
func bytesOnDisk(dir string) (n int64) {
	file := filepath.Join(dir, "localqueue.db")
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	for _, suffix := range []string{"", "-wal"} {
		if st, err := os.Stat(file + suffix); err == nil {
			n += st.Size()
		}
	}
	return n
}

// walKeptAll tells whether the pages that a vacuum has written are still in the WAL, and not all in the file. Emptied, it holds
// no more than what was written since.
func walKeptAll(f *queue.Facts) bool { return f.WALFrames >= f.Pages && f.WALFrames > f.WALCopied }

type checkDoc struct {
	Healthy  bool         `json:"healthy"`
	Findings []findingDoc `json:"findings"`
}

type findingDoc struct {
	Queue *string `json:"queue"`
	ID    *int64  `json:"id"`
	Text  string  `json:"text"`
}

func checkCmd(a *app) *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Examine the file; exit 1 if anything is wrong with it",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.existing(func(q *queue.Queue) error {
				found, err := q.Store().Check(cmd.Context(), quick)
				if err != nil {
					return err
				}
				if err := a.printFindings(found); err != nil {
					return err
				}
				if len(found) > 0 {
					return failf(errUnhealthy, "%s: make a copy of the directory before anything else", counted(len(found), "finding"))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "don't compare indexes with their tables")
	return cmd
}

func (a *app) printFindings(found []queue.Finding) error {
	if a.json {
		doc := checkDoc{Healthy: len(found) == 0, Findings: []findingDoc{}}
		for _, f := range found {
			d := findingDoc{Queue: orNull(f.Queue), Text: f.Text}
			if f.ID != 0 {
				d.ID = &f.ID
			}
			doc.Findings = append(doc.Findings, d)
		}
		return a.printJSON(doc)
	}
	if len(found) == 0 {
		return a.print(nil, "healthy\n")
	}
	return a.table(func(row func(...any)) {
		row("QUEUE", "ID", "FINDING")
		for _, f := range found {
			id := any("-")
			if f.ID != 0 {
				id = f.ID
			}
			row(or(safe.Line(f.Queue)), id, safe.Line(f.Text))
		}
	})
}
