//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// plan is one run to be made.
type plan struct {
	scenario  string
	name      string // of the case
	params    Params
	tasks     []task
	lease     time.Duration // 0 is the queue's default
	fill      int
	fillState queue.State
	undrained bool          // what is left in the queue stays there
	killEvery time.Duration // above 0: a process is killed and replaced so often
	after     func(b *bed, into *found) error
}

// found is what only the journals of all processes together tell, by role.
type found struct {
	latencies map[string]histograms
	jobs      map[string]int64 // completed within the time; where the processes' own counts are incomplete
}

// overtime is how long processes may take to end after their measured time.
const overtime = 2 * time.Minute

// measure makes one run: its own file, its processes from start to end, the sums, the accounting.
func (p *plan) measure(ctx context.Context, s *scratch, start *thread, command []string) (run Result, err error) {
	run = Result{Scenario: p.scenario, Case: p.name, Params: p.params}
	b, err := s.newBed()
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	check := audit{lease: p.lease, drained: !p.undrained}
	if check.lease == 0 {
		check.lease = queue.DefaultLease
	}
	if err := p.prepare(ctx, b, &check); err != nil {
		return run, err
	}
	outcomes, took, err := p.run(ctx, b, &run, &crew{start: start.start, command: command})
	if err != nil {
		return run, err
	}
	run.Seconds = took.Seconds()
	run.DBBytes = fileSize(filepath.Join(b.dir, "localqueue.db"))
	extra := found{latencies: map[string]histograms{}, jobs: map[string]int64{}}
	if p.after != nil {
		if err := p.after(b, &extra); err != nil {
			return run, err
		}
	}
	if err := p.summarise(&run, outcomes, &extra); err != nil {
		return run, err
	}
	check.kills = run.Kills
	for _, t := range p.tasks {
		check.lanes = max(check.lanes, t.Goroutines*max(1, t.Batch))
	}
	return run, p.account(ctx, b, &run, &check)
}

// prepare makes the file and fills it.
func (p *plan) prepare(ctx context.Context, b *bed, check *audit) (err error) {
	store, err := b.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if check.filled, err = fill(ctx, store.Default(), p.fill, p.fillState, p.params.Payload); err != nil {
		return err
	}
	check.before, err = store.Default().Stats(ctx)
	return err
}

// run lets the processes do their work. None is left when it returns.
func (p *plan) run(ctx context.Context, b *bed, run *Result, c *crew) (outcomes map[string][]outcome, took time.Duration, err error) {
	defer c.dismiss()
	tasks := make([]task, len(p.tasks))
	for i, t := range p.tasks {
		t.Dir, t.Journal, t.AtOnce, t.Lease = b.dir, b.journal(), p.killEvery > 0, p.lease
		tasks[i] = t
	}
	if err := c.assemble(ctx, tasks); err != nil {
		return nil, 0, err
	}
	sizes := b.watchSizes()
	defer func() { run.WALBytes = sizes.end() }()
	began, err := c.release()
	if err != nil {
		return nil, 0, err
	}
	if p.killEvery > 0 {
		if err := p.killSome(ctx, b, run, c, began); err != nil {
			return nil, 0, err
		}
	}
	limit := time.Duration(0)
	if d := p.tasks[0].Duration; d > 0 {
		limit = d + overtime
	}
	if err := c.finish(ctx, limit); err != nil {
		return nil, 0, err
	}
	took = time.Duration(monotonic() - began)
	outcomes = map[string][]outcome{}
	for _, m := range c.members {
		if !m.killed.Load() {
			outcomes[m.task.Role] = append(outcomes[m.task.Role], m.outcome)
		}
	}
	return outcomes, took, nil
}

// killSome kills processes at random and puts others in their place, until the time is nearly over.
func (p *plan) killSome(ctx context.Context, b *bed, run *Result, c *crew, began int64) error {
	end := began + int64(p.tasks[0].Duration)
	living := append([]*member(nil), c.members...)
	for monotonic() < end-2*int64(p.killEvery) {
		if err := sleep(ctx, time.Duration((0.5+rand.Float64())*float64(p.killEvery))); err != nil {
			return err
		}
		i := rand.IntN(len(living))
		victim := living[i]
		select {
		case <-victim.done:
			if victim.err == nil && monotonic() < end {
				return errors.New("a process ended before its time")
			}
			return victim.err // none: this one was late
		default:
		}
		victim.kill()
		<-victim.done
		run.Kills++
		t := victim.task
		t.Journal = b.journal()
		m, err := launch(c.start, c.command, t)
		if err != nil {
			return err
		}
		c.members = append(c.members, m)
		if err := m.awaitReady(ctx); err != nil {
			return err
		}
		if err := m.write(fmt.Sprintf("go %d", began)); err != nil {
			return err
		}
		living[i] = m
	}
	return nil
}

// summarise fills in the roles, in the order of the tasks.
func (p *plan) summarise(run *Result, outcomes map[string][]outcome, extra *found) error {
	seen := map[string]bool{}
	for _, t := range p.tasks {
		if seen[t.Role] {
			continue
		}
		seen[t.Role] = true
		window := t.Duration
		if t.Count > 0 {
			window = 0 // who counts may have ended before
		}
		r, err := summarise(t.Role, outcomes[t.Role], window)
		if err != nil {
			return err
		}
		for op, l := range extra.latencies[t.Role].latencies() {
			r.Latency[op] = l
		}
		if jobs, ok := extra.jobs[t.Role]; ok {
			r.Done, r.PerSecond, r.Jain, r.Shares = jobs, float64(jobs)/t.Duration.Seconds(), 0, nil
		}
		run.Roles = append(run.Roles, r)
	}
	return nil
}

// account works off what is left and goes through the books.
func (p *plan) account(ctx context.Context, b *bed, run *Result, check *audit) (err error) {
	store, err := b.open(queue.WithLease(check.lease))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if !p.undrained {
		if err := b.drain(ctx, store.Default(), check.lease); err != nil {
			return fmt.Errorf("working off what was left: %w", err)
		}
	}
	check.journals = b.journals
	run.Accounting, err = check.settle(ctx, store.Default())
	return err
}
