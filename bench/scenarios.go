//go:build unix

package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// scenarios in the order of a report.
var scenarios = []struct {
	name  string
	about string
	plans func(*Config, size) []plan
}{
	{"single", "one process, one goroutine: puts alone, then gets and acks alone, beside the limit in C", single},
	{"contention", "processes that put, get and ack in turns on one file; or a mix of producers and consumers", contention},
	{"durability", "the same work with full, balanced and normal durability", durability},
	{"payload", "the same work with payloads of 100 B to 1 MB", payloads},
	{"batch", "PutMany, GetMany and AckMany of 1 to 1000 jobs a call", batches},
	{"backlog", "a claim beside many jobs that are ready, delayed, acked or dead", backlog},
	{"wakeup", "from a put or an ack in one process to a waiting call's return in another; what waiting costs", wakeup},
	{"worker", "a Worker with a handler that does nothing, eight at once", workers},
	{"kill", "processes are killed and replaced all the time; nothing may be lost", kills},
}

// Scenarios lists their names in the order of a report.
func Scenarios() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// About says what a scenario measures.
func About(scenario string) string {
	for _, s := range scenarios {
		if s.name == scenario {
			return s.about
		}
	}
	return ""
}

// plans are the runs of one round.
func (c *Config) plans() []plan {
	var all []plan
	for _, s := range scenarios {
		if slices.Contains(c.Scenarios, s.name) {
			for _, p := range s.plans(c, profiles[c.Profile]) {
				p.scenario = s.name
				all = append(all, p)
			}
		}
	}
	return all
}

// basic is a plan of n processes of one role.
func (c *Config) basic(name, role string, n int) plan {
	t := task{Role: role, Goroutines: c.Goroutines, Payload: c.Payload, Durability: c.Durability, NoLine: c.NoLine,
		Duration: c.Duration, Count: c.Count}
	return plan{name: name, tasks: slices.Repeat([]task{t}, n), params: Params{
		Processes: n, Goroutines: c.Goroutines, Payload: c.Payload, Durability: string(c.Durability), Line: !c.NoLine}}
}

// each changes all tasks of a plan.
func (p plan) each(change func(*task)) plan {
	for i := range p.tasks {
		change(&p.tasks[i])
	}
	return p
}

func (p plan) durable(d queue.Durability) plan {
	p.params.Durability = string(d)
	return p.each(func(t *task) { t.Durability = d })
}

func (p plan) withoutLine() plan {
	p.name += ", no line"
	p.params.Line = false
	p.tasks = slices.Clone(p.tasks)
	return p.each(func(t *task) { t.NoLine = true })
}

// counting gives each goroutine n rounds, or less if that takes too long.
func (p plan) counting(n int, most time.Duration) plan {
	return p.each(func(t *task) { t.Count, t.Duration = n, most })
}

// single is what the limit program measures too.
func single(c *Config, s size) []plan {
	n := s.single
	if c.Count > 0 && !c.addedSingle {
		n = c.Count
	}
	one := *c
	one.Goroutines, one.Payload = 1, defaultPayload
	var all []plan
	for _, d := range []queue.Durability{queue.Normal, queue.Full} {
		put := one.basic(singlePut+", "+string(d), roleProducer, 1).counting(n, s.most).durable(d)
		get := one.basic(singleGet+", "+string(d), roleConsumer, 1).counting(n, s.most).durable(d)
		get.fill, get.fillState = n, queue.Ready
		all = append(all, put, get)
	}
	return all
}

const (
	singlePut = "put"
	singleGet = "get+ack"
)

func contention(c *Config, _ size) []plan {
	var all []plan
	if c.Producers > 0 {
		all = append(all, c.mix())
	} else {
		for _, n := range c.Processes {
			name := counted(n, "process", "processes")
			if c.Goroutines > 1 {
				name += fmt.Sprintf(" of %d", c.Goroutines)
			}
			all = append(all, c.basic(name, roleCycle, n))
		}
	}
	if c.NoLine {
		for i := range all {
			all[i].name += ", no line"
		}
	}
	if c.Pairs > 0 {
		for _, p := range slices.Clone(all) {
			all = append(all, p.withoutLine())
		}
		// In pairs: a machine's mood lasts longer than a run.
		half := len(all) / 2
		paired := make([]plan, 0, len(all))
		for i := range half {
			paired = append(paired, all[i], all[half+i])
		}
		return paired
	}
	return all
}

func (c *Config) mix() plan {
	name := counted(c.Producers, "producer", "producers") + ", " + counted(c.Consumers, "consumer", "consumers")
	if c.Goroutines > 1 {
		name += fmt.Sprintf(" of %d", c.Goroutines)
	}
	p := c.basic(name, roleProducer, c.Producers)
	p.tasks = append(p.tasks, c.basic("", roleConsumer, c.Consumers).tasks...)
	p.params.Processes = len(p.tasks)
	return p
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func durability(c *Config, _ size) []plan {
	var all []plan
	for _, d := range []queue.Durability{queue.Full, queue.Balanced, queue.Normal} {
		all = append(all, c.basic(string(d), roleCycle, 2).durable(d))
	}
	return all
}

func payloads(c *Config, s size) []plan {
	var all []plan
	for _, n := range s.payloads {
		p := c.basic(bytesText(int64(n)), roleCycle, 1).each(func(t *task) { t.Payload = n })
		p.params.Payload = n
		all = append(all, p)
	}
	return all
}

const batchSuffix = " a call"

func batches(c *Config, s size) []plan {
	var all []plan
	for _, n := range s.batches {
		p := c.basic(fmt.Sprint(n)+batchSuffix, roleCycle, 1).each(func(t *task) { t.Batch = n })
		p.params.Batch = n
		all = append(all, p)
	}
	return all
}

func backlog(c *Config, s size) []plan {
	n := s.claims
	if c.Count > 0 {
		n = c.Count
	}
	one := *c
	one.Goroutines = 1
	var all []plan
	for _, state := range []queue.State{queue.Ready, queue.Delayed, queue.Acked, queue.Failed} {
		for _, rows := range s.backlog {
			p := one.basic(fmt.Sprintf("%d %s", rows, state), roleCycle, 1).counting(n, s.most)
			p.fill, p.fillState, p.undrained = rows, state, true
			p.params.Backlog, p.params.State = rows, string(state)
			all = append(all, p)
		}
	}
	return all
}

func workers(c *Config, s size) []plan {
	n := s.worker
	if c.Count > 0 {
		n = c.Count
	}
	eight := *c
	if eight.Goroutines == 1 {
		eight.Goroutines = 8
	}
	p := eight.basic(counted(eight.Goroutines, "handler", "handlers"), roleWorker, 1).counting(0, 0)
	p.fill, p.fillState = n, queue.Ready
	return []plan{p}
}

// killLease is short, so that what a killed process held comes back within the run.
const killLease = time.Second

func kills(c *Config, s size) []plan {
	timed := *c
	if !c.ownDuration {
		timed.Count, timed.Duration = 0, s.kill
	}
	if timed.Producers == 0 {
		timed.Producers, timed.Consumers = 2, 3
	}
	p := timed.mix()
	p.lease, p.killEvery, p.after = killLease, s.killEvery, countRecords
	return []plan{p}
}

// countRecords counts for the killed processes, who can't tell any more.
func countRecords(b *bed, into *found) error {
	roles := map[event]string{evPut: roleProducer, evAck: roleConsumer}
	for _, path := range b.journals {
		err := readJournal(path, func(r record) {
			if role, ok := roles[r.event]; ok {
				into.jobs[role]++
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
