//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/cmd/localqueue/internal/child"
	"github.com/localqueue/localqueue/cmd/localqueue/internal/lines"
	"github.com/localqueue/localqueue/cmd/localqueue/internal/safe"
	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

type workFlags struct {
	concurrency  int
	untilEmpty   bool
	untilDrained bool
	timeout      time.Duration
	grace        time.Duration
	lease        time.Duration
}

func workCmd(a *app) *cobra.Command {
	var f workFlags
	cmd := &cobra.Command{
		Use:   "work [flags] -- CMD ARGS...",
		Short: "Run a command for each job",
		Long: `Run a command for each job of the queue: the payload on its stdin, facts about the job in its environment. The lease is
kept alive while the command runs.

  exit 0            the job is done (ack)
  exit 65           it can't ever be done: to the dead letters (EX_DATAERR)
  any other end     another delivery after a while (nack), with the end of stderr as the error

Environment: LOCALQUEUE_ID, LOCALQUEUE_JOB_ID, LOCALQUEUE_ATTEMPT (from 1), LOCALQUEUE_MAX_ATTEMPTS, LOCALQUEUE_DELIVERY
(a fencing number: it only grows), LOCALQUEUE_RECEIPT, LOCALQUEUE_PRIORITY, LOCALQUEUE_ENQUEUED_AT, LOCALQUEUE_HEADERS
(JSON), LOCALQUEUE_HEADER_name for each header (capitals; other characters than letters and digits become _), and
LOCALQUEUE_DIR and LOCALQUEUE_QUEUE, so that a localqueue in the command works on the same queue.

The command and what it starts are one process group. At the first interrupt (INT, TERM, HUP) no more jobs are claimed
and the signal is passed on to the groups; after --grace they are killed. What had not finished is released, the attempt
not used. The second interrupt kills and leaves at once. A job that exceeds --timeout, is cancelled or loses its lease
gets TERM, and is killed after --grace.

On Linux the command is killed with this process if that is killed. What the command itself has started isn't: prefer
"exec" in a shell's last line, so that there is nothing between.

Output of commands is passed on in whole lines. With --json stdout has one document per finished job instead, and the
commands' output goes to stderr.`,
		Example: `  localqueue work --concurrency 4 -- ./thumbnail.sh
  localqueue work --until-empty -- sh -c 'exec curl --fail --data-binary @- https://example.com/hook'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cmp.Or(notNegative("timeout", f.timeout), notNegative("grace", f.grace))
			switch {
			case err != nil:
				return err
			case len(args) == 0 || args[0] == "":
				return usagef("name the command to run: localqueue work -- CMD ARGS...")
			case cmd.ArgsLenAtDash() != 0:
				return usagef("write -- before the command, so that its flags are told from ours: localqueue work -- %s", args[0])
			case f.untilEmpty && f.untilDrained:
				return usagef("--until-empty and --until-drained exclude each other")
			case f.concurrency < 1:
				return usagef("--concurrency %d: must be 1 or more", f.concurrency)
			}
			path, err := a.lookPath(args[0])
			if err == nil {
				path, err = filepath.Abs(path)
			}
			if err != nil {
				return failf(errCommand, "the command can't be run: %v; no job was claimed", err)
			}
			return runWork(cmd.Context(), a, &f, path, args)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.concurrency, "concurrency", 1, "run so many commands at once")
	flags.BoolVar(&f.untilEmpty, "until-empty", false, "end when no job can be claimed and none runs here")
	flags.BoolVar(&f.untilDrained, "until-drained", false, "end when no job is left that is ready, delayed, or held by anybody")
	flags.DurationVar(&f.timeout, "timeout", 0, "end a command after this time; 0 is no limit")
	flags.DurationVar(&f.grace, "grace", generics.DefaultGrace, "time for a command to end by itself once it was asked to")
	flags.DurationVar(&f.lease, "lease", queue.DefaultLease, "how soon a job is delivered again when this process dies; kept alive until then")
	return cmd
}

// work is one run of the verb.
type work struct {
	app     *app
	flags   *workFlags
	path    string
	args    []string
	env     []string
	spawner *child.Spawner
	out     *lines.Sink // of the commands
	err     *lines.Sink // of the commands, the store and this program

	ctx    context.Context // ends when no more jobs are to be claimed
	end    context.CancelFunc
	mu     sync.Mutex
	fault  error // what ended the work before its time
	killed atomic.Int64
}

// leaveLag is how long a second interrupt waits for the killed commands' jobs to be released.
const leaveLag = time.Second

func runWork(ctx context.Context, a *app, f *workFlags, path string, args []string) (err error) {
	dir := a.dir
	if real, err := filepath.EvalSymlinks(dir); err == nil { // else it is to be made; Abs alone would take link/.. for the link's parent
		dir = real
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	w := &work{app: a, flags: f, path: path, args: args, env: inherited(a.environ(), dir)}
	w.ctx, w.end = context.WithCancel(ctx)
	defer w.end()
	w.err = lines.NewSink(a.err, nil)
	w.out = lines.NewSink(a.out, func(err error) {
		w.stop(failf(wrapOutput(err), "stdout is gone: %v; what had not finished was released", err))
	})
	forJobs := *a
	forJobs.err = w.err // the store's log lines too must not cut those of the commands
	store, err := forJobs.open(false, queue.WithLease(f.lease))
	if err != nil {
		return err
	}
	defer func() {
		if closing := store.Close(); err == nil {
			err = closing
		}
	}()
	w.spawner = child.NewSpawner()
	defer w.spawner.Close()
	a.signals.linger.Store(int64(leaveLag))

	q, err := generics.On[[]byte](store, a.queue)
	if err != nil {
		return err
	}
	if st, err := q.Stats(w.ctx); err == nil && st.Paused {
		w.note("queue %q is paused: localqueue resume goes on", a.queue)
	}
	// The commands are killed after the grace; the worker, which can only cancel contexts, then finds them ended.
	opts := []generics.WorkerOption{generics.Concurrency(f.concurrency), generics.Grace(f.grace + time.Second), generics.OnDone(w.done),
		generics.EndOn(queue.ErrReplaced)}
	if f.untilEmpty || f.untilDrained { // a run that is to end doesn't wait for what only somebody can mend
		opts = append(opts, generics.EndOn(queue.ErrDiskFull, queue.ErrReadOnly, queue.ErrCorrupt))
	}
	if f.untilEmpty {
		opts = append(opts, generics.UntilEmpty())
	}
	if f.untilDrained {
		opts = append(opts, generics.UntilDrained())
	}
	err = generics.NewWorker(q.With(generics.Bytes()), w.handle, opts...).Run(w.ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		return w.fault
	}
	if n := w.killed.Load(); err == nil && n > 0 {
		return failf(errKilled, "commands killed because they had not ended when asked to: %d; their jobs were released", n)
	}
	return err
}

// stop ends the work for a reason that isn't the user's.
func (w *work) stop(fault error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == nil {
		w.fault = fault
	}
	w.end()
}

// workDoc is a job that work is done with.
type workDoc struct {
	ID        int64            `json:"id"`
	Queue     string           `json:"queue"`
	JobID     *string          `json:"job_id"`
	Attempt   int              `json:"attempt"`
	Delivery  int64            `json:"delivery"`
	Outcome   generics.Outcome `json:"outcome"` // acked, nacked, failed, released, lost
	Exit      *int             `json:"exit"`    // null if it was ended by a signal, or is not known
	Error     *string          `json:"error"`
	RuntimeMS int64            `json:"runtime_ms"`
}

// done tells how a job ended: with --json of every job, else of those that didn't go well.
func (w *work) done(e generics.Event) {
	j, text := e.Job, ""
	if e.Err != nil {
		text = e.Err.Error()
	}
	var ended *commandError
	isEnded := errors.As(e.Err, &ended)
	if w.app.json {
		doc := workDoc{ID: j.ID, Queue: j.Queue, JobID: orNull(j.JobID), Attempt: j.Attempt, Delivery: j.Delivery, Outcome: e.Outcome,
			Error: orNull(text), RuntimeMS: e.Duration.Milliseconds()}
		if zero := 0; e.Outcome == generics.Acked {
			doc.Exit = &zero
		} else if isEnded && ended.exit >= 0 {
			doc.Exit = &ended.exit
		}
		if b, err := marshal(doc); err == nil {
			_, _ = w.out.Write(b)
		}
		return
	}
	if isEnded {
		text = ended.what // the end of stderr has just been seen
	}
	switch e.Outcome {
	case generics.Nacked, generics.Panicked:
		w.note("job %d: %s (attempt %d of %d)", j.ID, text, j.Attempt, j.MaxAttempts)
	case generics.Failed:
		w.note("job %d: %s (attempt %d of %d); it is failed now", j.ID, text, j.Attempt, j.MaxAttempts)
	case generics.Lost:
		if errors.Is(e.Err, queue.ErrCancelled) {
			w.note("job %d was cancelled", j.ID)
		} else {
			w.note("job %d: %s; it is delivered again, and may run twice", j.ID, text)
		}
	}
}

func (w *work) note(format string, args ...any) {
	_, _ = fmt.Fprintf(w.err, "localqueue: %s\n", safe.Line(fmt.Sprintf(format, args...))) // a Sink never fails
}
