//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/queue"
)

type putFlags struct {
	file       string
	base64     bool
	lines      bool
	skipEmpty  bool
	jobID      string
	pendingKey bool
	delay      time.Duration
	at         string
	priority   int16
	maxRetries int
	headers    []string
	maxPending int
	wait       time.Duration
}

func putCmd(a *app) *cobra.Command {
	var f putFlags
	cmd := &cobra.Command{
		Use:   "put [PAYLOAD|-]",
		Short: "Put a job, or with --lines one per input line, and print the ids",
		Long: `Put a job and print its id. The payload is the argument, a file, or stdin, byte for byte.

With --lines each line of stdin or of --file becomes a job, stored in batches; a line's end (\n) isn't part of it. When a
line is refused, put stops with its number, and the jobs before it stay.`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := f.options(cmd, args)
			if err != nil {
				return err
			}
			if f.lines {
				return putLines(cmd.Context(), a, &f, opts)
			}
			return putOne(cmd.Context(), a, &f, opts, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "file", "", "read the payload, or the lines, from this `file`")
	flags.BoolVar(&f.base64, "base64", false, "the payload, or each line, is base64")
	flags.BoolVar(&f.lines, "lines", false, "one job per line of the input")
	flags.BoolVar(&f.skipEmpty, "skip-empty", false, "with --lines: leave out empty lines")
	flags.StringVar(&f.jobID, "job-id", "", "a `key`: while a job holds it, a put of the same key stores nothing and prints that job's id")
	flags.BoolVar(&f.pendingKey, "unique-while-pending", false, "the key is free again once the job is acked or failed")
	flags.DurationVar(&f.delay, "delay", 0, "deliver no sooner than this from now")
	flags.StringVar(&f.at, "at", "", "deliver no sooner than this `instant` (RFC 3339)")
	flags.Int16Var(&f.priority, "priority", 0, "higher goes first")
	flags.IntVar(&f.maxRetries, "max-retries", queue.DefaultMaxRetries, "deliveries after the first; 0 is one delivery")
	flags.StringArrayVar(&f.headers, "header", nil, "attach `NAME=VALUE`; may be repeated")
	flags.IntVar(&f.maxPending, "max-pending", 0, "refuse (exit 6) while the queue has this many ready (also delayed) and leased jobs")
	flags.DurationVar(&f.wait, "wait", 0, "with --max-pending: how long to wait for room")
	return cmd
}

// options checks the flags and makes what the queue is to be asked of them. Nothing is touched yet.
func (f *putFlags) options(cmd *cobra.Command, args []string) ([]queue.PutOption, error) {
	given := cmd.Flags().Changed
	err := cmp.Or(
		notNegative("delay", f.delay), notNegative("max-retries", f.maxRetries), notNegative("max-pending", f.maxPending),
		notNegative("wait", f.wait), f.checkSource(given, args))
	switch {
	case err != nil:
		return nil, err
	case given("delay") && given("at"):
		return nil, usagef("--delay and --at exclude each other")
	case given("job-id") && f.jobID == "":
		return nil, usagef("--job-id is empty: leave it out instead")
	case given("job-id") && f.lines:
		return nil, usagef("--job-id would be the same for every line: put keyed jobs one at a time")
	case f.pendingKey && !given("job-id"):
		return nil, usagef("--unique-while-pending needs --job-id")
	case given("wait") && f.maxPending == 0:
		return nil, usagef("--wait needs --max-pending")
	}
	opts := []queue.PutOption{queue.Delay(f.delay), queue.Priority(f.priority), queue.MaxRetries(f.maxRetries)}
	if given("at") {
		t, err := time.Parse(time.RFC3339, f.at)
		if err != nil {
			return nil, usagef("--at %q is not an instant like 2030-01-31T08:00:00Z", f.at)
		}
		opts = append(opts, queue.At(t))
	}
	if f.jobID != "" {
		opts = append(opts, queue.JobID(f.jobID))
	}
	if f.pendingKey {
		opts = append(opts, queue.UniqueWhilePending())
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, usagef("--header %q is not NAME=VALUE", h)
		}
		opts = append(opts, queue.Header(name, value))
	}
	return opts, queue.CheckOptions(opts...)
}

func (f *putFlags) checkSource(given func(string) bool, args []string) error {
	switch {
	case given("file") && len(args) > 0:
		return usagef("the payload is given twice: as an argument and by --file")
	case given("file") && f.file == "":
		return usagef("--file is empty: name a file")
	case f.lines && len(args) > 0 && args[0] != "-":
		return usagef("--lines reads stdin; for a file use --file %s", args[0])
	case f.skipEmpty && !f.lines:
		return usagef("--skip-empty needs --lines")
	}
	return nil
}

// source opens what the payload or the lines come from.
func (a *app) source(file string) (io.ReadCloser, error) {
	if file == "" || file == "-" {
		if a.inTerminal {
			return nil, usagef("no payload: give it as an argument, by --file, or on stdin")
		}
		return io.NopCloser(a.in), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, failf(errInput, "%v", err)
	}
	return f, nil
}

func putOne(ctx context.Context, a *app, f *putFlags, opts []queue.PutOption, args []string) error {
	payload, err := f.payload(ctx, a, args)
	if err != nil {
		return err
	}
	return a.with(false, func(q *queue.Queue) error {
		res, err := f.put(ctx, q, func(ctx context.Context, wait bool) ([]queue.PutResult, error) {
			put := q.TryPut
			if wait {
				put = q.Put
			}
			res, err := put(ctx, payload, opts...)
			return []queue.PutResult{res}, err
		})
		if err != nil {
			return err
		}
		if res[0].Duplicate && !a.json {
			a.note("job %d holds this --job-id already; nothing was stored", res[0].ID)
		}
		if err := a.printPut(q.Name(), res[0]); err != nil {
			return failf(errOutput, "job %d is stored, but its id could not be printed: %v", res[0].ID, err)
		}
		return nil
	}, queue.WithMaxPending(f.maxPending))
}

// put puts without waiting for room and then, if that is wanted, with waiting. What didn't fit in time is ErrFull.
func (f *putFlags) put(ctx context.Context, q *queue.Queue, put func(ctx context.Context, wait bool) ([]queue.PutResult, error)) ([]queue.PutResult, error) {
	res, err := put(ctx, false)
	if f.wait == 0 || !errors.Is(err, queue.ErrFull) {
		return res, err
	}
	patient, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	res, err = put(patient, true)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, queue.ErrBusy) && !errors.Is(err, queue.ErrOutcomeUnknown) {
		return nil, failf(queue.ErrFull, "queue %q still has %d ready and leased jobs after %v; nothing was stored", q.Name(), f.maxPending, f.wait)
	}
	return res, err
}

type putDoc struct {
	ID        int64  `json:"id"`
	Queue     string `json:"queue"`
	Duplicate bool   `json:"duplicate"`
}

func (a *app) printPut(queue string, res queue.PutResult) error {
	return a.print(putDoc{ID: res.ID, Queue: queue, Duplicate: res.Duplicate}, "%d\n", res.ID)
}

// payload reads the one job's bytes, no more than may be put.
func (f *putFlags) payload(ctx context.Context, a *app, args []string) ([]byte, error) {
	if len(args) > 0 && args[0] != "-" {
		if f.base64 {
			return decodeBase64(args[0])
		}
		return []byte(args[0]), nil
	}
	src, err := a.source(f.file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	limit := queue.DefaultMaxPayload
	if f.base64 {
		limit = base64.StdEncoding.EncodedLen(limit) + limit/16 // with room for line ends
	}
	b, err := readAll(ctx, io.LimitReader(src, int64(limit)+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > limit:
		return nil, failf(queue.ErrPayloadTooLarge, "the payload has more than the %d bytes a job may have: put a file's name or address instead", queue.DefaultMaxPayload)
	case f.base64:
		return decodeBase64(string(b))
	}
	return b, nil
}

// readAll is io.ReadAll that an interrupt ends, although the read itself can't be.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := io.ReadAll(r)
		done <- result{b, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, failf(errInput, "reading the payload: %v", r.err)
		}
		return r.b, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("reading the payload: %w", ctx.Err())
	}
}

func decodeBase64(s string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil {
		return nil, usagef("the payload is not base64: %v", err)
	}
	return b, nil
}
