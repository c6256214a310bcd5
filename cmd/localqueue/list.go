//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/cmd/localqueue/internal/safe"
	"github.com/localqueue/localqueue/queue"
)

// states are those that list walks through, in this order.
var states = []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Failed, queue.Acked}

func listCmd(a *app) *cobra.Command {
	var state, after string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs, of one state or all",
		Long: `List jobs: ready in the order of delivery, delayed by the time they fall due, leased by the end of the lease, failed by
id, acked by the time they were. Without --state all of them, in this order of states.

Where a page ends, --after goes on: the cursor is printed to stderr, and with --json is the field "next" of the last job.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return usagef("--limit %d: must be from 1 to 1000", limit)
			}
			from, err := startList(state, after)
			if err != nil {
				return err
			}
			return a.existing(func(q *queue.Queue) error {
				page, err := from.page(cmd.Context(), q, limit)
				if err != nil {
					return err
				}
				return a.printPage(page)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "ready, delayed, leased, failed or acked")
	cmd.Flags().IntVar(&limit, "limit", 100, "list so many at most")
	cmd.Flags().StringVar(&after, "after", "", "go on after this `cursor`")
	completeStates(cmd)
	return cmd
}

func completeStates(cmd *cobra.Command) {
	var names []string
	for _, s := range states {
		names = append(names, string(s))
	}
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that isn't there
}

func parseState(s string) (queue.State, error) {
	if state := queue.State(s); slices.Contains(states, state) {
		return state, nil
	}
	return "", usagef("--state %q: use ready, delayed, leased, failed or acked", s)
}

// listing is a place in a list: the states to walk through and the cursor in the first of them.
type listing struct {
	states []queue.State
	after  string
}

func startList(state, cursor string) (listing, error) {
	l := listing{states: states}
	if state != "" {
		s, err := parseState(state)
		if err != nil {
			return l, err
		}
		l.states = []queue.State{s}
	}
	if cursor == "" {
		return l, nil
	}
	name, after, ok := strings.Cut(cursor, ":")
	at := slices.Index(l.states, queue.State(name))
	if !ok || at < 0 {
		return l, usagef("--after %q is not a cursor of this list", cursor)
	}
	l.states, l.after = l.states[at:], after
	return l, nil
}

// page is up to limit jobs from here on. Next is the cursor to go on after, "" at the end.
func (l listing) page(ctx context.Context, q *queue.Queue, limit int) (queue.Page, error) {
	var page queue.Page
	for i, state := range l.states {
		part, err := q.List(ctx, state, queue.ListOptions{Limit: limit - len(page.Records), After: l.after})
		if err != nil {
			return page, err
		}
		page.Records = append(page.Records, part.Records...)
		l.after = ""
		switch {
		case part.Next != "":
			page.Next = string(state) + ":" + part.Next
			return page, nil
		case len(page.Records) == limit && i+1 < len(l.states):
			page.Next = string(l.states[i+1]) + ":"
			return page, nil
		}
	}
	return page, nil
}

func (a *app) printPage(page queue.Page) error {
	if a.json {
		for i := range page.Records {
			doc := newRecordDoc(&page.Records[i])
			if i == len(page.Records)-1 {
				doc.Next = page.Next
			}
			if err := a.printJSON(doc); err != nil {
				return err
			}
		}
		return nil
	}
	err := a.table(func(row func(...any)) {
		row("ID", "STATE", "ATTEMPTS", "PRIORITY", "WHEN", "JOB_ID", "PAYLOAD", "ERROR")
		for i := range page.Records {
			r := &page.Records[i]
			when := r.UpdatedAt
			switch r.State {
			case queue.Ready, queue.Delayed:
				when = r.AvailableAt
			case queue.Leased:
				when = r.LeaseUntil
			}
			row(r.ID, r.State, fmt.Sprintf("%d/%d", r.Attempts, r.MaxAttempts), r.Priority, instant(when), or(safe.Cut(r.JobID, 24)), or(safe.Cut(string(r.Payload), 40)), safe.Cut(problem(r), 60))
		}
	})
	if err == nil && page.Next != "" {
		a.note("more: --after %s", page.Next)
	}
	return err
}

func problem(r *queue.Record) string {
	switch {
	case r.Reason == "":
		return r.LastError
	case r.LastError == "":
		return string(r.Reason)
	}
	return string(r.Reason) + ": " + r.LastError
}
