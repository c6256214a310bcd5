//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/queue"
)

func getCmd(a *app) *cobra.Command {
	var wait, lease time.Duration
	var count int
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Claim a job and print it",
		Long: `Claim a job, or up to --count, and print it. It is yours until its lease ends: settle it with ack, nack, fail or
release, by its id and receipt, or it is delivered again.

Without --json the payload goes to stdout, byte for byte unless that is a terminal, and "ID RECEIPT" to stderr. With
--count above 1 a newline follows each payload; --json tells them apart whatever they hold.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := notNegative("wait", wait); err != nil {
				return err
			}
			if count < 1 || count > 1000 {
				return usagef("--count %d: must be from 1 to 1000", count)
			}
			return a.with(false, func(q *queue.Queue) error {
				jobs, err := claim(cmd.Context(), q, wait, count)
				if err != nil {
					return err
				}
				return a.deliver(cmd.Context(), q, jobs, count > 1)
			}, queue.WithLease(lease))
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for a job")
	cmd.Flags().DurationVar(&lease, "lease", queue.DefaultLease, "how long the job is yours")
	cmd.Flags().IntVar(&count, "count", 1, "claim up to so many, as soon as there is one")
	return cmd
}

// claim takes up to n jobs. When none comes in time, that is ErrEmpty.
func claim(ctx context.Context, q *queue.Queue, wait time.Duration, n int) ([]*queue.Job, error) {
	if wait == 0 {
		jobs, err := q.TryGetMany(ctx, n)
		if errors.Is(err, queue.ErrEmpty) {
			err = failf(queue.ErrEmpty, "queue %q %s", q.Name(), whyEmpty(ctx, q, "has no job to claim now"))
		}
		return jobs, err
	}
	patient, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	jobs, err := q.GetMany(patient, n)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, queue.ErrBusy) {
		err = failf(queue.ErrEmpty, "queue %q %s", q.Name(), whyEmpty(ctx, q, fmt.Sprintf("had no job to claim within %v", wait)))
	}
	return jobs, err
}

// whyEmpty tells a pause from an empty queue.
func whyEmpty(ctx context.Context, q *queue.Queue, text string) string {
	if st, err := q.Stats(ctx); err == nil && st.Paused {
		text += fmt.Sprintf(": it is paused, with %d due; localqueue resume goes on", st.Ready-st.Delayed)
	}
	return text
}

// deliver prints claimed jobs. Those that can't be printed are given back.
func (a *app) deliver(ctx context.Context, q *queue.Queue, jobs []*queue.Job, newline bool) error {
	for i, j := range jobs {
		var err error
		if a.json {
			err = a.printJSON(newJobDoc(j))
		} else if err = a.printPayload(j.Payload, newline); err == nil {
			_, _ = fmt.Fprintf(a.err, "%d %s\n", j.ID, j.Receipt) // who has no stderr wants no receipt
		}
		if err != nil {
			return giveBack(ctx, q, jobs[i:], err)
		}
	}
	return nil
}

func giveBack(ctx context.Context, q *queue.Queue, jobs []*queue.Job, cause error) error {
	refs := make([]queue.Ref, len(jobs))
	for i, j := range jobs {
		refs[i] = j.Ref()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.Lease())
	defer cancel()
	if _, err := q.ReleaseMany(ctx, refs); err != nil {
		return failf(errOutput, "%v; the %d jobs not printed come back when their lease ends, since they could not be released: %v", cause, len(jobs), err)
	}
	return failf(errOutput, "%v; the %d jobs not printed were released", cause, len(jobs))
}
