//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// part is the work of one process: lanes are its goroutines.
type part struct {
	task    *task
	q       *queue.Queue
	journal *journal
	start   int64
	end     int64           // of the measured time; 0 if the task goes by a count
	receive context.Context // ends with the measured time, for those who wait for others' jobs
	patient context.Context // ends when a job that must be there isn't

	done, jobs atomic.Int64
	busy, lost atomic.Int64
	lastDone   atomic.Int64 // of the last unit
	turns      turns
	idle       time.Duration
	idleCPU    time.Duration
}

// patience is how long a process waits for a job that must be there.
const (
	patience   = 15 * time.Second
	afterwards = 5 * time.Second // the same, once the measured time is over and the others have stopped
)

func newPart(t *task, q *queue.Queue, j *journal, start int64) *part {
	p := &part{task: t, q: q, journal: j, start: max(start, monotonic())}
	if t.Duration > 0 {
		p.end = start + int64(t.Duration) // also of a process that came later, in the place of a killed one
	}
	p.lastDone.Store(p.start)
	p.turns.last.Store(p.start)
	return p
}

var errNoRole = errors.New("no such role")

func (p *part) play() (out outcome, err error) {
	roles := map[string]func(*lane) error{
		roleCycle: (*lane).cycle, roleProducer: (*lane).produce, roleConsumer: (*lane).consume,
		roleWaiter: (*lane).await, rolePacer: (*lane).pace, roleCrowder: (*lane).crowd, roleMaker: (*lane).makeRoom,
	}
	run, ok := roles[p.task.Role]
	if !ok && p.task.Role != roleWorker {
		return out, fmt.Errorf("%w: %q", errNoRole, p.task.Role)
	}
	defer p.contexts()()

	before := processUsage()
	all := histograms{}
	if p.task.Role == roleWorker {
		err = p.work(all)
	} else {
		all, err = p.lanes(run)
	}
	p.turns.finish(min(monotonic(), max(p.end, p.lastDone.Load())))
	after := processUsage()
	packed, packing := all.encode()
	return outcome{
		Done: p.done.Load(), Jobs: p.jobs.Load(), Elapsed: time.Duration(p.lastDone.Load() - p.start), Gap: time.Duration(p.turns.longest.Load()),
		CPU: after.cpu - before.cpu, PeakRSS: after.peakRSS, Busy: p.busy.Load(), Lost: p.lost.Load(), Idle: p.idle, IdleCPU: p.idleCPU, Histograms: packed,
	}, errors.Join(err, packing)
}

// contexts makes those that the waiting calls share: one for each call would cost more than some of the calls do.
func (p *part) contexts() (end func()) {
	all, cancel := context.WithCancel(context.Background())
	p.receive, p.patient = all, all
	if p.end == 0 {
		go p.watch(all, cancel)
		return cancel
	}
	left := max(0, time.Duration(p.end-monotonic()))
	receive, cancelReceive := context.WithTimeout(all, left)
	patient, cancelPatient := context.WithTimeout(all, left+afterwards)
	p.receive, p.patient = receive, patient
	return func() { cancelReceive(); cancelPatient(); cancel() }
}

// watch gives up when nothing has been completed for too long.
func (p *part) watch(ctx context.Context, giveUp func()) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if monotonic()-p.turns.last.Load() > int64(patience) {
				giveUp()
			}
		}
	}
}

// lanes runs the role in each goroutine and merges what they have measured.
func (p *part) lanes(run func(*lane) error) (histograms, error) {
	var wg sync.WaitGroup
	lanes := make([]*lane, p.task.Goroutines)
	errs := make([]error, len(lanes))
	for i := range lanes {
		lanes[i] = &lane{part: p, h: histograms{}, payload: newPayload(p.task.Payload)}
		wg.Go(func() { errs[i] = run(lanes[i]) })
	}
	wg.Wait()
	all := histograms{}
	for _, l := range lanes {
		all.merge(l.h)
	}
	return all, errors.Join(errs...)
}

// over says whether a lane has done its rounds.
func (p *part) over(rounds int) bool {
	return p.task.Count > 0 && rounds >= p.task.Count || p.end != 0 && monotonic() >= p.end
}

// unit counts a completed unit of the role's work, unless it came too late.
func (p *part) unit(at int64, jobs int) {
	if p.end != 0 && at > p.end {
		return
	}
	p.done.Add(1)
	p.jobs.Add(int64(jobs))
	p.lastDone.Store(at) // the latest of several goroutines, give or take one operation
}

// turns finds the longest time in which a process completed nothing.
type turns struct{ last, longest atomic.Int64 }

func (t *turns) complete(at int64) {
	gap := at - t.last.Swap(at)
	for {
		longest := t.longest.Load()
		if gap <= longest || t.longest.CompareAndSwap(longest, gap) {
			return
		}
	}
}

// finish counts the time after the last operation too: a process that never got its turn has no other.
func (t *turns) finish(at int64) { t.complete(at) }
