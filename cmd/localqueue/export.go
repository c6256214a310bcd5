//go:build unix

package main

import (
	"errors"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/queue"
)

type exportDoc struct {
	Export string `json:"export"`
	File   string `json:"file"`
	Jobs   int64  `json:"jobs"`
}

func exportCmd(a *app) *cobra.Command {
	var out string
	var opts archive.FileOptions
	cmd := &cobra.Command{
		Use:   "export [--out F]",
		Short: "Write the jobs, in whatever state, with their history, as JSON Lines",
		Long: `Write the jobs, in whatever state, with their history, as JSON Lines: of all queues, unless --queue or LOCALQUEUE_QUEUE
names one. Other work goes on meanwhile; each job is as it was at the moment it was read.

Without --out, or with --out -, the lines go to stdout. With it they go to F.part, which becomes F when it is whole and on the disk; what was
broken off goes on with --resume. import reads them back.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			about := cmd.Flags().Changed("out") && out != "-" || opts.Resume || opts.Overwrite
			if out == "-" {
				out = "" // stdout
			}
			if out == "" && about {
				return usagef("--out is missing: name the file; --resume and --force are about it")
			}
			if cmd.Flags().Changed("queue") || a.getenv("LOCALQUEUE_QUEUE") != "" {
				opts.Queue = a.queue
			}
			return a.with(true, func(q *queue.Queue) error { return a.export(cmd, q.Store(), out, opts) }, a.oneDocument()...)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the `file` to write; stdout if it is left out, or -")
	cmd.Flags().BoolVar(&opts.Resume, "resume", false, "go on with F.part, if it is there")
	cmd.Flags().BoolVar(&opts.Overwrite, "force", false, "replace F, if it is there")
	return cmd
}

// oneDocument keeps the warnings of the store away from the JSON on stderr: what they tell ends an export or import as its error.
func (a *app) oneDocument() []queue.Option {
	if !a.json {
		return nil
	}
	return []queue.Option{queue.WithLogger(slog.New(slog.DiscardHandler))}
}

func (a *app) export(cmd *cobra.Command, s *queue.Store, out string, opts archive.FileOptions) error {
	bar, shown := newProgress(a, "exporting", out != "" || !a.outTerminal), int64(0)
	opts.Progress = func(jobs int64) {
		bar.add(int(jobs - shown))
		shown = jobs
	}
	defer bar.finish()
	if out == "" {
		w := &output{w: a.out}
		_, err := archive.Export(cmd.Context(), s, w, opts.ExportOptions)
		if w.err != nil {
			return wrapOutput(w.err)
		}
		return err
	}
	res, err := archive.ExportFile(cmd.Context(), s, out, opts)
	bar.finish()
	if errors.Is(err, archive.ErrExists) && !opts.Overwrite && !opts.Resume {
		return failf(err, "%v; --force replaces F, --resume goes on with F.part", err)
	}
	if errors.Is(err, queue.ErrDiskFull) {
		return failf(err, "%v; --resume goes on with F.part", err)
	}
	if err != nil {
		return err
	}
	return a.print(exportDoc{Export: res.Name, File: out, Jobs: res.Jobs}, "exported %d\n", res.Jobs)
}

// output remembers that writing failed: an export may fail at its source too.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}
