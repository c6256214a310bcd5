package iofault

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

func init() { roles["worker"] = worker }

// workReport is what a Worker's process tells at its end.
type workReport struct {
	Runs    map[int64]int64 // how often the handler ran for a job
	Lines   int             // logged as warnings and errors, by the Worker and its Store
	Elapsed time.Duration
}

// worker is the role of a process that works until nothing is left.
func worker() error {
	log := newCounting()
	s, err := queue.Open(os.Getenv(dirEnv), queue.WithDurability(queue.Full), queue.WithLogger(slog.New(log)), queue.WithLease(5*time.Second))
	if err != nil {
		return err
	}
	q, err := generics.On[[]byte](s, workQueue)
	if err != nil {
		return err
	}
	r, start := workReport{Runs: map[int64]int64{}}, time.Now()
	var mu sync.Mutex
	err = generics.NewWorker(q.With(generics.Bytes()), func(_ context.Context, j *generics.Job[[]byte]) error {
		mu.Lock()
		defer mu.Unlock()
		r.Runs[j.ID]++
		return nil
	}, generics.UntilDrained(), generics.Concurrency(4), generics.Prefetch(0)).Run(context.Background())
	if err != nil {
		return err
	}
	r.Lines, r.Elapsed = log.count(), time.Since(start)
	if err := s.Close(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

const workQueue = "work"

func TestAWorkerOnAFailingDiskLosesNothingLogsLittleAndRecovers(t *testing.T) {
	t.Parallel()
	const jobs = 600
	dir, control := place(t), preload.NewControl(t)
	s, err := queue.Open(dir, queue.WithDurability(queue.Normal))
	ok(t, err)
	q, err := s.Queue(workQueue)
	ok(t, err)
	batch := make([]queue.NewJob, jobs)
	for i := range batch {
		batch[i].Payload = payload(100)
	}
	ok(t, second(q.PutMany(t.Context(), batch)))
	ok(t, s.Close())

	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	env := preload.Build(t).Env(preload.Options{Dir: dir, Control: control})
	cmd.Env, cmd.Stderr = childEnv("worker", append(env, dirEnv+"="+dir)...), os.Stderr
	out, err := cmd.StdoutPipe()
	ok(t, err)
	first := preload.Fault{Calls: preload.Write, Files: preload.WAL, Errno: syscall.EIO, Nth: 30, Sticky: true}
	control.Arm(first)
	ok(t, cmd.Start())
	ended := make(chan error, 1)
	var r workReport
	go func() { ended <- json.NewDecoder(out).Decode(&r) }()
	// Each fault comes in the middle of the work, and goes once the Worker has met it some times.
	for _, f := range []preload.Fault{
		first,
		{Calls: preload.Write, Files: preload.AnyFile, Errno: syscall.ENOSPC, Nth: 50, Sticky: true},
		{Calls: preload.Sync, Files: preload.AnyFile, Errno: syscall.EIO, Nth: 10, Sticky: true},
		{Calls: preload.Read | preload.Write, Files: preload.AnyFile, Errno: syscall.EIO, Nth: 30, Sticky: true},
	} {
		if f != first {
			control.Arm(f)
		}
		comes(t, control, 6)
	}
	for range 10 { // and now and then
		control.Arm(preload.Fault{Calls: preload.Write | preload.Sync, Files: preload.AnyFile, Errno: syscall.EIO, Nth: 7, Sticky: true})
		comes(t, control, 1)
	}
	control.Disarm()
	ok(t, <-ended)
	ok(t, cmd.Wait())

	if most := 2 + int(r.Elapsed/(5*time.Second)); r.Lines == 0 || r.Lines > most {
		t.Errorf("%d lines were logged in %v, want 1 to %d", r.Lines, r.Elapsed, most)
	}
	survey(t, dir)
	everyJobIsDone(t, dir, jobs, r.Runs)
}

// comes waits until a fault has come so often. It stays until the next is armed, or the Worker would be done before that.
func comes(t *testing.T, control *preload.Control, times uint64) {
	t.Helper()
	for late := time.After(patience); control.Fired() < times; {
		select {
		case <-late:
			t.Fatalf("the fault has come %d times only, the Worker has met %d calls", control.Fired(), control.Seen())
		case <-time.After(time.Millisecond):
		}
	}
}

// everyJobIsDone demands that each job is acked, and that its handler ran once for each delivery at most.
func everyJobIsDone(t *testing.T, dir string, jobs int, runs map[int64]int64) {
	t.Helper()
	s, err := queue.Open(dir)
	ok(t, err)
	defer func() { ok(t, s.Close()) }()
	q, err := s.Queue(workQueue)
	ok(t, err)
	done := 0
	for r, err := range q.All(t.Context(), queue.Acked) {
		ok(t, err)
		done++
		if n := runs[r.ID]; n < 1 || n > r.Delivery {
			t.Errorf("job %d was run %d times in %d deliveries", r.ID, n, r.Delivery)
		}
	}
	if done != jobs {
		t.Errorf("%d of %d jobs are done", done, jobs)
	}
}
