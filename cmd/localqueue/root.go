//go:build unix

package main

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/queue"
)

// app is one run of the command line: where it reads and writes, and the global flags.
type app struct {
	in          io.Reader
	out         io.Writer
	err         io.Writer
	inTerminal  bool
	outTerminal bool
	errTerminal bool
	getenv      func(string) string
	environ     func() []string
	lookPath    func(string) (string, error) // finds work's command
	signals     *signals

	dir        string
	queue      string
	json       bool
	busy       time.Duration
	durability string
}

// Groups of verbs in the help.
const (
	groupUse  = "use"
	groupLook = "look"
	groupAct  = "act"
	groupKeep = "keep"
)

// run executes one command line and returns the exit code.
func run(ctx context.Context, a *app, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	return printError(a.err, a.json || asksJSON(args), err)
}

// asksJSON looks for the switch in a command line that couldn't be parsed.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "localqueue",
		Short: "A durable job queue in one SQLite file",
		Long: `A durable job queue in one SQLite file.

LOCALQUEUE_DIR and LOCALQUEUE_QUEUE stand in for --dir and --queue. Results go to stdout, everything else to stderr.

Exit codes: 0 done, 1 error, 2 usage, 3 nothing there, 4 lease lost, 5 busy or timed out, 6 full, 7 not found.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("name a verb: localqueue help lists them")
			}
			if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
				return usagef("unknown verb %q: did you mean %s?", args[0], strings.Join(like, " or "))
			}
			return usagef("unknown verb %q: localqueue help lists them", args[0])
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%v (see %s --help)", err, cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.dir, "dir", cmp.Or(a.getenv("LOCALQUEUE_DIR"), "./data"), "the queue's `directory`")
	flags.StringVar(&a.queue, "queue", cmp.Or(a.getenv("LOCALQUEUE_QUEUE"), queue.DefaultQueue), "the queue's `name`")
	flags.BoolVar(&a.json, "json", false, "print one JSON document per result")
	flags.DurationVar(&a.busy, "busy-timeout", queue.DefaultBusy, "how long to wait for other writers")
	flags.StringVar(&a.durability, "durability", string(queue.Balanced), "which commits are synced to the disk: full, balanced or normal")
	_ = root.RegisterFlagCompletionFunc("durability", cobra.FixedCompletions([]string{"full", "balanced", "normal"}, cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("queue", a.completeQueue)

	root.AddGroup(&cobra.Group{ID: groupUse, Title: "Use:"}, &cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupAct, Title: "Act:"}, &cobra.Group{ID: groupKeep, Title: "Keep:"})
	for _, v := range []struct {
		group string
		verbs []*cobra.Command
	}{
		{groupUse, []*cobra.Command{putCmd(a), getCmd(a), ackCmd(a), nackCmd(a), failCmd(a), releaseCmd(a), extendCmd(a), workCmd(a)}},
		{groupLook, []*cobra.Command{statsCmd(a), queuesCmd(a), listCmd(a), showCmd(a), peekCmd(a)}},
		{groupAct, []*cobra.Command{retryCmd(a), runCmd(a), deleteCmd(a), cancelCmd(a), pauseCmd(a), resumeCmd(a), reclaimCmd(a)}},
		{groupKeep, []*cobra.Command{purgeCmd(a), setCmd(a), vacuumCmd(a), checkCmd(a), doctorCmd(a), exportCmd(a), importCmd(a), backupCmd(a), restoreCmd(a), migrateCmd(a)}},
		{"", []*cobra.Command{benchCmd(a), completionCmd(), versionCmd(a)}},
	} {
		for _, c := range v.verbs {
			c.GroupID = v.group
			root.AddCommand(c)
		}
	}
	root.SetHelpCommand(helpCmd())
	return root
}

func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Help about a verb",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || about == nil || len(rest) > 0 {
				return usagef("no help on %q: localqueue help lists the verbs", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// open opens the store of the global flags. With must it has to be there already.
func (a *app) open(must bool, opts ...queue.Option) (*queue.Store, error) {
	if err := checkDir("--dir", a.dir); err != nil {
		return nil, err
	}
	opts = append([]queue.Option{queue.WithQueue(a.queue)}, opts...)
	return queue.Open(a.dir, a.storeOptions(must, opts...)...)
}

func (a *app) storeOptions(must bool, opts ...queue.Option) []queue.Option {
	opts = append([]queue.Option{queue.WithBusyTimeout(a.busy), queue.WithDurability(queue.Durability(a.durability)), queue.WithLogger(a.logger())}, opts...)
	if must {
		opts = append(opts, queue.MustExist())
	}
	return opts
}

// logger is for the faults of the store and of a worker.
func (a *app) logger() *slog.Logger {
	level := &slog.HandlerOptions{Level: slog.LevelWarn}
	if a.json {
		return slog.New(slog.NewJSONHandler(a.err, level))
	}
	return slog.New(slog.NewTextHandler(a.err, level))
}

// with runs f on the queue of the global flags.
func (a *app) with(must bool, f func(*queue.Queue) error, opts ...queue.Option) (err error) {
	store, err := a.open(must, opts...)
	if err != nil {
		return err
	}
	defer func() {
		if closing := store.Close(); err == nil {
			err = closing
		}
	}()
	return f(store.Default())
}

// existing runs f on a queue that has to be there.
func (a *app) existing(f func(*queue.Queue) error) error { return a.with(true, f) }

func (a *app) completeQueue(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	_ = a.existing(func(q *queue.Queue) error { // no completion is no fault
		all, err := q.Store().Queues(cmd.Context())
		for _, s := range all {
			names = append(names, s.Queue)
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// Arguments.

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// checkDir refuses what names no directory: nothing, or a URL, for which a directory "file:" would be made. (A database in memory
// is refused with words of its own.)
func checkDir(what, dir string) error {
	if dir == "" {
		return usagef("%s is empty: name a directory", what)
	}
	path, isURL := strings.CutPrefix(dir, "file:")
	if !isURL || strings.HasPrefix(path, ":memory:") {
		return nil
	}
	if host, rooted := strings.CutPrefix(path, "//"); rooted {
		path = host
	}
	return usagef("%s %q is a URL: name the directory itself, as in %s", what, dir, cmp.Or(path, "/var/lib/queue"))
}

func atMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s takes one argument, not %d: quote what belongs together", cmd.CommandPath(), len(args))
	}
	return nil
}

// oneID takes the id of a job.
func oneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s takes one job id, not %d arguments", cmd.CommandPath(), len(args))
	}
	_, err := parseID(args[0])
	return err
}

// notNegative checks durations and counts for which less than nothing means nothing.
func notNegative[T time.Duration | int](flag string, value T) error {
	if value < 0 {
		return usagef("--%s %v: must not be negative", flag, value)
	}
	return nil
}
