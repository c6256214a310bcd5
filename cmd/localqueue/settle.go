//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/queue"
)

// settleDoc is what became of a delivery.
type settleDoc struct {
	ID         int64   `json:"id"`
	Queue      string  `json:"queue"`
	Done       string  `json:"done"` // acked, nacked, failed, released, extended
	LeaseUntil *string `json:"lease_until,omitempty"`
}

// settleCmd is a verb that takes a job's id and receipt.
func settleCmd(a *app, use, short, done string, settle func(ctx context.Context, q *queue.Queue, id int64, receipt string) error) *cobra.Command {
	var receipt string
	cmd := &cobra.Command{
		Use:   use + " ID --receipt R",
		Short: short,
		Args:  oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			if receipt == "" {
				return usagef("--receipt is missing: get printed it")
			}
			return a.existing(func(q *queue.Queue) error {
				if err := settle(cmd.Context(), q, id, receipt); err != nil {
					return onJob(err, q.Name(), id)
				}
				if !a.json || done == "" {
					return nil
				}
				return a.printJSON(settleDoc{ID: id, Queue: q.Name(), Done: done})
			})
		},
	}
	cmd.Flags().StringVar(&receipt, "receipt", "", "the delivery's `receipt`, which get printed")
	return cmd
}

func ackCmd(a *app) *cobra.Command {
	return settleCmd(a, "ack", "Mark a claimed job as done", "acked", func(ctx context.Context, q *queue.Queue, id int64, receipt string) error {
		return q.Ack(ctx, id, receipt)
	})
}

func nackCmd(a *app) *cobra.Command {
	var delay time.Duration
	var text string
	var cmd *cobra.Command
	cmd = settleCmd(a, "nack", "Give a claimed job back for another delivery", "nacked", func(ctx context.Context, q *queue.Queue, id int64, receipt string) error {
		return q.Nack(ctx, id, receipt, errorFlag(cmd, text), queue.Delay(delay))
	})
	cmd.Flags().DurationVar(&delay, "delay", 0, "deliver it again no sooner than this from now")
	cmd.Flags().StringVar(&text, "error", "", "what went wrong; kept with the job")
	cmd.PreRunE = func(*cobra.Command, []string) error { return notNegative("delay", delay) }
	return cmd
}

func failCmd(a *app) *cobra.Command {
	var text string
	var cmd *cobra.Command
	cmd = settleCmd(a, "fail", "Move a claimed job to the dead letters", "failed", func(ctx context.Context, q *queue.Queue, id int64, receipt string) error {
		return q.Fail(ctx, id, receipt, errorFlag(cmd, text))
	})
	cmd.Flags().StringVar(&text, "error", "", "what went wrong; kept with the job")
	return cmd
}

func releaseCmd(a *app) *cobra.Command {
	var delay time.Duration
	cmd := settleCmd(a, "release", "Give a claimed job back as if it had not been delivered", "released", func(ctx context.Context, q *queue.Queue, id int64, receipt string) error {
		return q.Release(ctx, id, receipt, queue.Delay(delay))
	})
	cmd.Flags().DurationVar(&delay, "delay", 0, "deliver it again no sooner than this from now")
	cmd.PreRunE = func(*cobra.Command, []string) error { return notNegative("delay", delay) }
	return cmd
}

func extendCmd(a *app) *cobra.Command {
	var d time.Duration
	cmd := settleCmd(a, "extend", "Set a claimed job's lease to end some time from now, and print when", "", func(ctx context.Context, q *queue.Queue, id int64, receipt string) error {
		until, err := q.Extend(ctx, id, receipt, d)
		if err != nil {
			return err
		}
		text := instant(until)
		return a.print(settleDoc{ID: id, Queue: q.Name(), Done: "extended", LeaseUntil: &text}, "%s\n", text)
	})
	cmd.Use = "extend ID --receipt R --for D"
	cmd.Flags().DurationVar(&d, "for", 0, "the lease ends this long from now")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("for") {
			return usagef("--for is missing: say how long from now the lease is to end")
		}
		if d <= 0 {
			return usagef("--for %v: must be more than 0; release gives the job back", d)
		}
		return nil
	}
	return cmd
}

// errorFlag is the text of --error, or nil, which keeps an earlier text.
func errorFlag(cmd *cobra.Command, text string) error {
	if !cmd.Flags().Changed("error") {
		return nil
	}
	return errors.New(text)
}
