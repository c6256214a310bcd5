//go:build unix

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/cmd/localqueue/internal/safe"
	"github.com/localqueue/localqueue/queue"
)

type statsDoc struct {
	Queue       string  `json:"queue"`
	Ready       int64   `json:"ready"`   // with the delayed ones
	Delayed     int64   `json:"delayed"` // not due yet
	Processing  int64   `json:"processing"`
	Expired     int64   `json:"expired"` // of those processing
	Acked       int64   `json:"acked"`
	Failed      int64   `json:"failed"`
	OldestAge   string  `json:"oldest_age"` // of the jobs that are due; 0s if none is
	OldestAgeMS int64   `json:"oldest_age_ms"`
	Paused      bool    `json:"paused"`
	KeepAcked   *string `json:"keep_acked"` // null: until purged
}

func newStatsDoc(s queue.Stats) statsDoc {
	doc := statsDoc{Queue: s.Queue, Ready: s.Ready, Delayed: s.Delayed, Processing: s.Processing, Expired: s.Expired, Acked: s.Acked, Failed: s.Failed,
		OldestAge: s.OldestAge.String(), OldestAgeMS: s.OldestAge.Milliseconds(), Paused: s.Paused}
	if s.KeepAcked != nil {
		keep := s.KeepAcked.String()
		doc.KeepAcked = &keep
	}
	return doc
}

func statsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Count the queue's jobs by state",
		Long: `Count the queue's jobs by state. A delayed job is ready, but not yet due: ready counts it, and delayed says how many those
are. Likewise expired are those of processing whose lease has ended. oldest is the age of the oldest job that is due.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.existing(func(q *queue.Queue) error {
				s, err := q.Stats(cmd.Context())
				if err != nil {
					return err
				}
				doc := newStatsDoc(s)
				if a.json {
					return a.printJSON(doc)
				}
				keep := "until purged"
				if doc.KeepAcked != nil {
					keep = *doc.KeepAcked
				}
				return a.table(func(row func(...any)) {
					row("queue", safe.Line(doc.Queue))
					row("ready", doc.Ready)
					row("  delayed", doc.Delayed)
					row("processing", doc.Processing)
					row("  expired", doc.Expired)
					row("acked", doc.Acked)
					row("failed", doc.Failed)
					row("oldest", doc.OldestAge)
					row("paused", doc.Paused)
					row("keep acked", keep)
				})
			})
		},
	}
}

// queuesHead is the head of a table of queues. What stands in brackets is a part of the column before it.
var queuesHead = []any{"QUEUE", "READY", "(DELAYED)", "PROCESSING", "(EXPIRED)", "ACKED", "FAILED", "OLDEST", ""}

func queuesCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "queues",
		Short: "Count the jobs of every queue",
		Long: `Count the jobs of every queue. What stands in brackets is a part of the column before it: a delayed job is ready, but not
yet due, and READY counts it; an expired one is processing, but its lease has ended.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.existing(func(q *queue.Queue) error {
				all, err := q.Store().Queues(cmd.Context())
				if err != nil {
					return err
				}
				if a.json {
					for _, s := range all {
						if err := a.printJSON(newStatsDoc(s)); err != nil {
							return err
						}
					}
					return nil
				}
				return a.table(func(row func(...any)) {
					row(queuesHead...)
					for _, s := range all {
						paused := ""
						if s.Paused {
							paused = "paused"
						}
						row(safe.Line(s.Queue), s.Ready, s.Delayed, s.Processing, s.Expired, s.Acked, s.Failed, s.OldestAge.Round(time.Millisecond), paused)
					}
				})
			})
		},
	}
}

func showCmd(a *app) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "show ID|--job-id K",
		Short: "Show a job in whatever state",
		Long: `Show a job in whatever state. On a terminal: its story, from the put through each failed delivery to where it stands now,
and its payload, safe to look at. To a pipe or file: the payload, byte for byte. With --json: everything.`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			which, err := whichJob(cmd, args, key)
			if err != nil {
				return err
			}
			return a.existing(func(q *queue.Queue) error {
				rec, history, err := which.find(cmd.Context(), q)
				if err != nil {
					return err
				}
				return a.printRecord(rec, history, true, q.Store().Now())
			})
		},
	}
	cmd.Flags().StringVar(&key, "job-id", "", "the job's `key`, instead of its id")
	return cmd
}

func peekCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "peek",
		Short: "Show the job that would be claimed next",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.existing(func(q *queue.Queue) error {
				rec, err := q.Peek(cmd.Context())
				if err != nil {
					return err
				}
				return a.printRecord(rec, nil, false, q.Store().Now())
			})
		},
	}
}
