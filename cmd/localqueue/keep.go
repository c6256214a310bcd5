//go:build unix

package main

import (
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
				return a.print(countDoc{Queue: q.Name(), Removed: n}, "purged %d\n", n)
			})
		},
	}
	cmd.Flags().DurationVar(&opts.OlderThan, "older-than", 0, "finished at least so long ago")
	cmd.Flags().BoolVar(&opts.Failed, "include-failed", false, "the dead letters too")
	return cmd
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
	Vacuumed bool `json:"vacuumed"`
}

func vacuumCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "vacuum",
		Short: "Give the space of removed jobs back to the file system",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.existing(func(q *queue.Queue) error {
				if err := q.Store().Vacuum(cmd.Context()); err != nil {
					return err
				}
				return a.print(vacuumDoc{true}, "")
			})
		},
	}
}

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
					return failf(errUnhealthy, "%d findings: make a copy of the directory before anything else", len(found))
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
