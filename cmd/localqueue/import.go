//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/queue"
)

type importDoc struct {
	Import     string `json:"import"`
	Stored     int    `json:"stored"`
	Duplicates int    `json:"duplicates"` // left out: another job of the queue holds their job_id
	Lines      int64  `json:"lines"`      // of the input that are in
	Earlier    int64  `json:"earlier"`    // of these, what earlier runs have brought
	KeptIDs    bool   `json:"kept_ids"`
}

func importCmd(a *app) *cobra.Command {
	opts := archive.ImportOptions{}
	cmd := &cobra.Command{
		Use:   "import [F]",
		Short: "Store the jobs of an export, or of lines made elsewhere, from a file or stdin",
		Long: `Store the jobs of an export, or of lines made elsewhere, from a file or stdin. A repeat stores nothing twice and goes on
where the one before has ended, however it ended. A broken line stops it with its number; what comes before is stored.

Ids are kept where the directory holds no job and has given none of these ids before; else the jobs get new ones. A job whose
job_id another one of its queue holds is left out.

Lines from elsewhere need --name, under which a repeat goes on, and one JSON object each, at least {"payload": VALUE},
{"text": "..."} or {"base64": "..."}; they may have the fields of an export too (queue, job_id, priority, headers,
available_at, max_attempts, ...). Those without a queue go to that of --queue.`,
		Args: atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Name == "" && cmd.Flags().Changed("name") {
				return usagef("--name is empty")
			}
			src, err := a.input(args)
			if err != nil {
				return err
			}
			defer func() { _ = src.Close() }()
			opts.Queue = a.queue
			return a.with(false, func(q *queue.Queue) error { return a.importFrom(cmd.Context(), q.Store(), src, opts) }, a.oneDocument()...)
		},
	}
	cmd.Flags().StringVar(&opts.Name, "name", "", "tells this import from others; an export has a `name` of its own")
	return cmd
}

func (a *app) input(args []string) (io.ReadCloser, error) {
	if len(args) == 0 || args[0] == "-" {
		if a.inTerminal {
			return nil, usagef("no input: name a file, or pipe the lines in")
		}
		return io.NopCloser(a.in), nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, failf(errInput, "%v", err)
	}
	return f, nil
}

func (a *app) importFrom(ctx context.Context, s *queue.Store, src io.Reader, opts archive.ImportOptions) error {
	bar, shown := newProgress(a, "importing", true), 0
	opts.Progress = func(r archive.ImportResult) {
		bar.add(r.Stored + r.Duplicates - shown)
		shown = r.Stored + r.Duplicates
	}
	r, stop := interruptible(ctx, src)
	defer stop()
	res, err := archive.Import(ctx, s, r, opts)
	bar.finish()
	if err != nil {
		return detail(importFailure(err, res), func(d *errorDoc) { d.Stored = &res.Stored })
	}
	ids := "new ids"
	if res.KeptIDs {
		ids = "ids kept"
	}
	doc := importDoc{Import: res.Name, Stored: res.Stored, Duplicates: res.Duplicates, Lines: res.Lines, Earlier: res.Earlier, KeptIDs: res.KeptIDs}
	if res.Lines == res.Earlier && res.Lines > 0 {
		return a.print(doc, "nothing new: all %d lines were in already\n", res.Lines)
	}
	return a.print(doc, "imported %d (%s), left out %d whose job_id is held, %d lines were in before\n", res.Stored, ids, res.Duplicates, res.Earlier)
}

// importFailure says what is in, and gives a bad input the exit code of one: it is no mistake on the command line.
func importFailure(err error, res archive.ImportResult) error {
	line := (*archive.LineError)(nil)
	kind := err
	switch {
	case errors.Is(err, archive.ErrUnnamed):
		return failf(errUsage, "the first line is no header of an export: give lines from elsewhere a name with --name")
	case errors.Is(err, archive.ErrSameSource):
		return failf(err, "%v: --dir names another directory, --name NAME stores the copies on purpose", err)
	case errors.Is(err, archive.ErrOtherInput):
		return failf(err, "%v (--name)", err)
	case errors.Is(err, queue.ErrImportQueue):
		return failf(err, "%v with --queue", err)
	case errors.As(err, &line):
		kind = errPayload
		for _, more := range []error{queue.ErrPayloadTooLarge, archive.ErrVersion, archive.ErrTruncated} {
			if errors.Is(err, more) {
				kind = more
			}
		}
		return detail(failf(kind, "%v; %d jobs stored before it: mend it, and repeat the import", err, res.Stored), func(d *errorDoc) { d.Line = int(line.Line) })
	}
	if res.Stored == 0 {
		return failf(kind, "%s; no job was stored: repeat the import", message(err))
	}
	return failf(kind, "%s; %d jobs were stored before that: a repeat goes on behind them", message(err), res.Stored)
}

// interruptible makes a reader end with the context, also while it waits for a pipe.
func interruptible(ctx context.Context, src io.Reader) (r io.Reader, stop func()) {
	pipe, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, src)
		if err != nil {
			err = failf(errInput, "%v", err)
		}
		_ = w.CloseWithError(err) // nil is io.EOF
	}()
	forget := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	return pipe, func() {
		forget()
		_ = pipe.Close()
	}
}
