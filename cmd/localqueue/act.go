//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/queue"
)

// jobRef names a job by its id or its key.
type jobRef struct {
	id  int64
	key string // if id is 0
}

// whichJob reads ID|--job-id K.
func whichJob(cmd *cobra.Command, args []string, key string) (jobRef, error) {
	keyed := cmd.Flags().Changed("job-id")
	switch {
	case keyed && len(args) > 0:
		return jobRef{}, usagef("the job is named twice: by its id and by --job-id")
	case keyed && key == "":
		return jobRef{}, usagef("--job-id is empty: give the job's key or its id")
	case keyed:
		return jobRef{key: key}, nil
	case len(args) == 0:
		return jobRef{}, usagef("name the job, by its id or by --job-id")
	}
	id, err := parseID(args[0])
	return jobRef{id: id}, err
}

func (r jobRef) find(ctx context.Context, q *queue.Queue) (*queue.Record, []queue.Delivery, error) {
	if r.id > 0 {
		rec, history, err := q.Show(ctx, r.id)
		return rec, history, onJob(err, q.Name(), r.id)
	}
	rec, history, err := q.ShowKey(ctx, r.key)
	return rec, history, detail(err, func(d *errorDoc) { d.Queue, d.JobID = q.Name(), r.key })
}

// actDoc is what was done to one job.
type actDoc struct {
	ID    int64  `json:"id"`
	Queue string `json:"queue"`
	Done  string `json:"done"` // retried, due, deleted, cancelled
}

func (a *app) acted(q *queue.Queue, id int64, done string, err error) error {
	if err != nil {
		return onJob(err, q.Name(), id)
	}
	return a.print(actDoc{ID: id, Queue: q.Name(), Done: done}, "%d\n", id)
}

// actCmd is a verb that does one thing to one job.
func actCmd(a *app, use, short, done string, act func(q *queue.Queue, ctx context.Context, id int64) error) *cobra.Command {
	return &cobra.Command{
		Use:   use + " ID",
		Short: short,
		Args:  oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			return a.existing(func(q *queue.Queue) error { return a.acted(q, id, done, act(q, cmd.Context(), id)) })
		},
	}
}

func runCmd(a *app) *cobra.Command {
	return actCmd(a, "run", "Make a delayed job due now", "due", (*queue.Queue).RunNow)
}

func cancelCmd(a *app) *cobra.Command {
	return actCmd(a, "cancel", "Move an unfinished job to the dead letters, taking it from whoever works on it", "cancelled", (*queue.Queue).Cancel)
}

type retryDoc struct {
	Queue     string `json:"queue"`
	Matched   int    `json:"matched"`
	Retried   int    `json:"retried"`
	Conflicts int    `json:"conflicts"` // their key is held by another live job
	DryRun    bool   `json:"dry_run"`
}

func retryCmd(a *app) *cobra.Command {
	var key string
	var all bool
	var filter queue.RetryFilter
	cmd := &cobra.Command{
		Use:   "retry ID|--job-id K|--all",
		Short: "Make failed jobs new again",
		Args:  atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			if err := cmp.Or(notNegative("older-than", filter.OlderThan), notNegative("limit", filter.Limit)); err != nil {
				return err
			}
			if given("error-contains") && filter.ErrorContains == "" {
				return usagef("--error-contains is empty: leave it out to retry whatever the error")
			}
			if all {
				if len(args) > 0 || given("job-id") {
					return usagef("--all and a single job exclude each other")
				}
				return a.existing(func(q *queue.Queue) error { return a.retryAll(cmd.Context(), q, filter) })
			}
			for _, flag := range []string{"error-contains", "older-than", "limit", "dry-run"} {
				if given(flag) {
					return usagef("--%s needs --all", flag)
				}
			}
			if len(args) == 0 && !given("job-id") {
				return usagef("name the job, by its id or by --job-id, or give --all")
			}
			which, err := whichJob(cmd, args, key)
			if err != nil {
				return err
			}
			return a.existing(func(q *queue.Queue) error {
				if which.id == 0 {
					rec, _, err := which.find(cmd.Context(), q)
					if err != nil {
						return err
					}
					which.id = rec.ID
				}
				return a.acted(q, which.id, "retried", q.RetryFailed(cmd.Context(), which.id))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&key, "job-id", "", "the job's `key`, instead of its id")
	flags.BoolVar(&all, "all", false, "every failed job of the queue")
	flags.StringVar(&filter.ErrorContains, "error-contains", "", "with --all: only those whose last error has this `text` in it")
	flags.DurationVar(&filter.OlderThan, "older-than", 0, "with --all: only those that failed at least so long ago")
	flags.IntVar(&filter.Limit, "limit", 0, "with --all: so many at most, 0 for no limit")
	flags.BoolVar(&filter.DryRun, "dry-run", false, "with --all: only count")
	return cmd
}

func (a *app) retryAll(ctx context.Context, q *queue.Queue, filter queue.RetryFilter) error {
	r, err := q.RetryMany(ctx, filter)
	if err != nil {
		return detail(err, func(d *errorDoc) { d.Queue, d.Changed = q.Name(), &r.Retried })
	}
	doc := retryDoc{Queue: q.Name(), Matched: r.Matched, Retried: r.Retried, Conflicts: r.Conflicts, DryRun: filter.DryRun}
	if filter.DryRun {
		return a.print(doc, "would retry %d\n", r.Matched)
	}
	text := fmt.Sprintf("retried %d", r.Retried)
	if r.Conflicts > 0 {
		text += fmt.Sprintf("; %d stay failed: another job holds their key", r.Conflicts)
	}
	return a.print(doc, "%s\n", text)
}

type countDoc struct {
	Queue   string `json:"queue"`
	Removed int    `json:"removed"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

func deleteCmd(a *app) *cobra.Command {
	var state string
	var olderThan time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "delete ID|--state S",
		Short: "Remove jobs that nobody works on",
		Args:  atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			if err := notNegative("older-than", olderThan); err != nil {
				return err
			}
			switch {
			case given("state") && len(args) > 0:
				return usagef("--state and a single job exclude each other")
			case given("state"):
				s, err := parseState(state)
				if err != nil {
					return err
				}
				if s == queue.Leased {
					return usagef("leased jobs can't be deleted: cancel them first")
				}
				filter := queue.DeleteFilter{State: s, OlderThan: olderThan, DryRun: dryRun}
				return a.existing(func(q *queue.Queue) error { return a.deleteMany(cmd.Context(), q, filter) })
			case given("older-than") || given("dry-run"):
				return usagef("--older-than and --dry-run need --state")
			case len(args) == 0:
				return usagef("name the job by its id, or give --state")
			}
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			return a.existing(func(q *queue.Queue) error { return a.acted(q, id, "deleted", q.Delete(cmd.Context(), id)) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&state, "state", "", "every job of this state: ready, delayed, failed or acked")
	flags.DurationVar(&olderThan, "older-than", 0, "with --state: only those in it for at least so long")
	flags.BoolVar(&dryRun, "dry-run", false, "with --state: only count")
	completeStates(cmd)
	return cmd
}

func (a *app) deleteMany(ctx context.Context, q *queue.Queue, filter queue.DeleteFilter) error {
	n, err := q.DeleteMany(ctx, filter)
	if err != nil {
		return detail(err, func(d *errorDoc) { d.Queue, d.Changed = q.Name(), &n })
	}
	what := "deleted"
	if filter.DryRun {
		what = "would delete"
	}
	return a.print(countDoc{Queue: q.Name(), Removed: n, DryRun: filter.DryRun}, "%s %d\n", what, n)
}

type pauseDoc struct {
	Queue  string `json:"queue"`
	Paused bool   `json:"paused"`
}

func pauseCmd(a *app) *cobra.Command {
	return switchCmd(a, "pause", "Stop the delivery of the queue's jobs, in every process", true, (*queue.Queue).Pause)
}

func resumeCmd(a *app) *cobra.Command {
	return switchCmd(a, "resume", "End a pause", false, (*queue.Queue).Resume)
}

func switchCmd(a *app, use, short string, paused bool, act func(*queue.Queue, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.existing(func(q *queue.Queue) error {
				if err := act(q, cmd.Context()); err != nil {
					return err
				}
				return a.print(pauseDoc{Queue: q.Name(), Paused: paused}, "")
			})
		},
	}
}

type reclaimDoc struct {
	Queue    string `json:"queue"`
	Returned int    `json:"returned"`
	Failed   int    `json:"failed"`
}

func reclaimCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reclaim",
		Short: "Return the jobs whose lease has ended, as every claim does",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.existing(func(q *queue.Queue) error {
				n, err := q.ReclaimExpired(cmd.Context())
				if err != nil {
					return err
				}
				return a.print(reclaimDoc{Queue: q.Name(), Returned: n.Returned, Failed: n.Failed}, "returned %d, failed %d\n", n.Returned, n.Failed)
			})
		},
	}
}
