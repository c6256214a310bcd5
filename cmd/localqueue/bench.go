//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/localqueue/localqueue/bench"
	"github.com/localqueue/localqueue/queue"
)

type benchFlags struct {
	config  bench.Config
	profile string
	out     string
	html    string
	force   bool
}

func benchCmd(a *app) *cobra.Command {
	var f benchFlags
	c := &f.config
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine: several processes on one file",
		Long: `Measure this machine: several processes on one file. This program is started again as producers, consumers and
receivers, which begin at one instant; then their figures are merged, and the books are gone through: every job that was
put must have been claimed and settled once. If not, the exit code is 1.

` + scenarioHelp() + `
The queues are made in a new directory, which is removed at the end: in --dir if that is given, else among the temporary
files. A --durability of full means nothing on a file system in memory; the report names the file system.`,
		Example: `  localqueue bench --profile smoke
  localqueue bench --scenario contention --processes 1,8,32 --duration 10s --html report.html
  localqueue bench --scenario contention --pairs 5 --out pairs.json
  localqueue bench compare before.json after.json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.fill(cmd, a); err != nil {
				return err
			}
			return runBench(cmd.Context(), a, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.profile, "profile", string(bench.Standard), "how much: smoke (seconds), standard (minutes) or full")
	flags.StringSliceVar(&c.Scenarios, "scenario", nil, "only these, with commas between them")
	flags.IntSliceVar(&c.Processes, "processes", nil, "contention: so many processes, one run for each number")
	flags.IntVar(&c.Producers, "producers", 0, "contention, kill: processes that only put; with --consumers")
	flags.IntVar(&c.Consumers, "consumers", 0, "contention, kill: processes that only get and ack; with --producers")
	flags.IntVar(&c.Goroutines, "goroutines", 1, "in each process")
	flags.IntVar(&c.Payload, "payload", 128, "of a job, in bytes")
	flags.DurationVar(&c.Duration, "duration", 0, "of each run; the profile's by default")
	flags.IntVar(&c.Count, "count", 0, "rounds of each goroutine, instead of a duration")
	flags.IntVar(&c.Rounds, "rounds", 0, "repeat all runs, in turns; figures are medians")
	flags.IntVar(&c.Pairs, "pairs", 0, "contention: with the line between processes and without it, in turns, so many times")
	flags.BoolVar(&c.NoLine, "no-line", false, "leave the order of processes to SQLite's busy handler")
	flags.BoolVar(&c.Reuse, "reuse", false, "--dir may hold a queue; it isn't touched")
	flags.StringVar(&c.Limit, "limit", "", "compare with this `program` (make limit)")
	flags.StringVar(&c.LimitSQL, "limit-sql", "sql/sqlite", "the `directory` with the schema for --limit")
	flags.StringVar(&f.out, "out", "", "write the report to this `file` as JSON")
	flags.StringVar(&f.html, "html", "", "write the report to this `file` as a page")
	flags.BoolVar(&f.force, "force", false, "write over those files")
	_ = cmd.RegisterFlagCompletionFunc("scenario", cobra.FixedCompletions(bench.Scenarios(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions([]string{"smoke", "standard", "full"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(benchCompareCmd(a), benchChildCmd())
	return cmd
}

func scenarioHelp() string {
	var b strings.Builder
	for _, name := range bench.Scenarios() {
		b.WriteString("  " + name + strings.Repeat(" ", 12-len(name)) + bench.About(name) + "\n")
	}
	return b.String()
}

// benchChildCmd is what the benchmark starts; it is of no use to a person.
func benchChildCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "child",
		Hidden: true,
		Args:   noArgs,
		Run:    func(*cobra.Command, []string) { os.Exit(bench.Child()) },
	}
}

// fill takes what the flags say into the configuration, or tells what is wrong with them.
func (f *benchFlags) fill(cmd *cobra.Command, a *app) error {
	flags := cmd.Flags()
	if flags.NFlag() == 0 {
		return usagef("say how much: --profile smoke takes seconds, standard minutes, full longer; or name a --scenario")
	}
	for _, name := range []string{"queue", "busy-timeout"} {
		if flags.Changed(name) {
			return usagef("bench makes queues of its own: leave out --%s", name)
		}
	}
	for _, name := range []string{"goroutines", "payload", "duration", "count", "rounds", "pairs", "producers", "consumers"} {
		if v := flags.Lookup(name).Value.String(); flags.Changed(name) && (v == "0" || v == "0s") {
			return usagef("--%s %s: must be more than nothing", name, v)
		}
	}
	if flags.Changed("dir") {
		if err := checkDir("--dir", a.dir); err != nil {
			return err
		}
		f.config.Dir = a.dir
	}
	if flags.Changed("durability") {
		f.config.Durability = queue.Durability(a.durability)
	}
	f.config.Profile = bench.Profile(f.profile)
	f.config.Repeat = repeat(cmd)
	if err := f.config.Check(); err != nil {
		return benchError(err)
	}
	if f.out != "" && f.out == f.html {
		return usagef("--out and --html name the same file")
	}
	for _, file := range []struct{ flag, path string }{{"out", f.out}, {"html", f.html}} {
		if err := f.checkFile(file.flag, file.path); err != nil {
			return err
		}
	}
	return nil
}

func (f *benchFlags) checkFile(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return usagef("--%s %s: there is no such directory", flag, path)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usagef("--%s %s: %v", flag, path, err)
	case info.IsDir():
		return usagef("--%s %s: that is a directory", flag, path)
	case !f.force:
		return usagef("--%s %s: the file exists; name another, or write over it with --force", flag, path)
	}
	return nil
}

// benchError makes a mistake on the command line of what can't be measured.
func benchError(err error) error {
	if errors.Is(err, bench.ErrConfig) {
		return usagef("%s", strings.TrimPrefix(err.Error(), bench.ErrConfig.Error()+": "))
	}
	return err
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,+-]+$`)

// repeat is a command line that does the same again.
func repeat(cmd *cobra.Command) []string {
	words := []string{"localqueue", "bench"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if s, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(s.GetSlice(), ",")
		}
		word := "--" + f.Name + "=" + value
		if !plainWord.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	})
	return words
}

func runBench(ctx context.Context, a *app, f *benchFlags) error {
	a.signals.linger.Store(int64(leaveLag)) // for the scratch directory, should the second interrupt come soon
	p := &benchProgress{app: a}
	f.config.Progress = p.show
	report, err := bench.Run(ctx, f.config)
	p.finish()
	if report == nil {
		if p := (*bench.ProcessError)(nil); errors.As(err, &p) && p.Said != "" && !a.json {
			_, _ = io.WriteString(a.err, p.Said+"\n") // stderr is the last resort
		}
		return benchError(err)
	}
	failed := err
	for _, file := range []struct {
		path  string
		write func(io.Writer) error
	}{{f.out, report.WriteJSON}, {f.html, report.WriteHTML}} {
		if err := writeReport(file.path, file.write); err != nil {
			return err
		}
	}
	var shown error
	if a.json {
		shown = a.printJSON(report)
	} else {
		shown = wrapOutput(report.WriteText(a.out))
	}
	if shown != nil {
		return shown
	}
	if failed != nil {
		return failf(errUnhealthy, "%v", failed)
	}
	return nil
}

// writeReport leaves a whole file or none.
func writeReport(path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return failf(err, "the report can't be written: %v", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
			err = failf(err, "the report %s can't be written: %v", path, err)
		}
	}()
	if err := errors.Join(write(tmp), tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
