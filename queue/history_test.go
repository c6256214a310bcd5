package queue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// TestHistoryOfFourProcessesHasOneEndForEveryDelivery lets four processes put, claim and settle on two queues for a while,
// let leases run out and settle too late. Each writes down every answer; afterwards the answers and the file must tell the
// same story (history_check_test.go has its rules).
//
//	LOCALQUEUE_HISTORY_TIME=60s go test ./queue -run TestHistory
func TestHistoryOfFourProcessesHasOneEndForEveryDelivery(t *testing.T) {
	dir := t.TempDir()
	started := time.Now()
	events := runHistory(t, dir, 4, historyTime(t))
	h := readHistory(t, dir, events)
	steps := time.Since(started) - time.Now().Round(0).Sub(started.Round(0)) // Round drops the monotonic clock
	h.clockSteady = steps.Abs() < 5*time.Millisecond
	if !h.clockSteady {
		t.Logf("the machine's clock stepped by %v: what needs a steady clock isn't checked", steps)
	}
	found := h.violations()
	t.Log(h.summary())
	const most = 20
	for _, v := range found[:min(most, len(found))] {
		t.Error(v)
	}
	if len(found) > most {
		t.Errorf("and %d more", len(found)-most)
	}
	if len(events) < 1000 || h.ends["lease_expired"] == 0 || h.ends["cancelled"] == 0 || h.ends["release"] == 0 {
		t.Errorf("the history is too thin to count: %s", h.summary())
	}
}

func historyTime(t *testing.T) time.Duration {
	if text := os.Getenv("LOCALQUEUE_HISTORY_TIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("LOCALQUEUE_HISTORY_TIME: %v", err)
		}
		return d
	}
	if testing.Short() {
		return time.Second
	}
	return 4 * time.Second
}

// historyEvent is one call of a process and its answer. Times are in microseconds since 1970, leases in milliseconds.
type historyEvent struct {
	Op       string
	Queue    string
	ID       int64
	Delivery int64  `json:",omitempty"`
	Receipt  string `json:",omitempty"`
	Attempt  int    `json:",omitempty"`
	Key      string `json:",omitempty"`
	Payload  string `json:",omitempty"`
	Dup      bool   `json:",omitempty"`
	Lease    int64  `json:",omitempty"` // what a claim asked for
	Until    int64  `json:",omitempty"` // when it ends, as answered
	Begin    int64
	End      int64
	Error    string `json:",omitempty"` // as modelKind tells it
	Process  int
}

func (e historyEvent) String() string {
	text := fmt.Sprintf("%s of job %d delivery %d by process %d, %d-%d us", e.Op, e.ID, e.Delivery, e.Process, e.Begin, e.End)
	if e.Error != "" {
		text += ": " + e.Error
	}
	return text
}

// historyOrder is what a process is told, in its environment.
type historyOrder struct {
	Dir     string
	Log     string
	Process int
	Time    time.Duration
}

const (
	historyRole = "history"
	historyEnv  = "LOCALQUEUE_HISTORY_ORDER"
)

// runHistory starts the processes, lets them begin together, and reads what they wrote down.
func runHistory(t *testing.T, dir string, processes int, d time.Duration) (events []historyEvent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d+time.Minute)
	defer cancel()
	logs := t.TempDir()
	var running []*exec.Cmd
	var gates []io.Closer
	for p := range processes {
		order, err := json.Marshal(historyOrder{Dir: dir, Log: filepath.Join(logs, fmt.Sprint(p)), Process: p, Time: d})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), roleEnv+"="+historyRole, historyEnv+"="+string(order))
		cmd.Stderr = &strings.Builder{}
		gate, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		ready, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running, gates = append(running, cmd), append(gates, gate)
		if line, err := bufio.NewReader(ready).ReadString('\n'); line != "ready\n" {
			t.Errorf("process %d isn't ready: %q, %v", p, line, err)
		}
	}
	for _, gate := range gates {
		if err := gate.Close(); err != nil {
			t.Error(err)
		}
	}
	for p, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", p, err, cmd.Stderr)
		}
		events = append(events, readEvents(t, filepath.Join(logs, fmt.Sprint(p)))...)
	}
	return events
}

func readEvents(t *testing.T, path string) (events []historyEvent) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var e historyEvent
		if err := d.Decode(&e); err == io.EOF {
			return events
		} else if err != nil {
			t.Fatalf("what a process wrote down in %s: %v", path, err)
		}
		events = append(events, e)
	}
}

// history is all that is known afterwards: the answers, and what the file says of each job.
type history struct {
	events      []historyEvent
	jobs        map[int64]*historyJob
	clockSteady bool
	file        []string       // what is wrong with the file as a whole
	ends        map[string]int // how deliveries ended
}

type historyJob struct {
	queue.Record
	story   map[int64]queue.Delivery
	put     *historyEvent
	claims  map[int64][]historyEvent
	settles map[int64][]historyEvent // acks, nacks, fails, releases and extends, in the order of the receiver's calls
	cancels []historyEvent           // that were answered with success
	repeats []historyEvent           // puts of its key that were told of this job
}

// readHistory reads the file and sorts the answers by job.
func readHistory(t *testing.T, dir string, events []historyEvent) *history {
	t.Helper()
	ctx := t.Context()
	s, err := queue.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	h := &history{events: events, jobs: map[int64]*historyJob{}, ends: map[string]int{}}
	findings, err := s.Check(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		h.file = append(h.file, fmt.Sprintf("check finds %+v", f))
	}
	for _, name := range historyQueues {
		q, err := s.Queue(name)
		if err != nil {
			t.Fatal(err)
		}
		h.readQueue(t, q)
	}
	for _, e := range events {
		h.sortIn(e)
	}
	return h
}

func (h *history) readQueue(t *testing.T, q *queue.Queue) {
	t.Helper()
	counted := map[queue.State]int64{}
	for _, state := range []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed} {
		for r, err := range q.All(t.Context(), state) {
			if err != nil {
				t.Fatal(err)
			}
			counted[state]++
			_, story, err := q.Show(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			j := &historyJob{Record: r, story: map[int64]queue.Delivery{}, claims: map[int64][]historyEvent{}, settles: map[int64][]historyEvent{}}
			for _, d := range story {
				j.story[d.Number] = d
			}
			h.jobs[r.ID] = j
		}
	}
	st, err := q.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if st.Ready != counted[queue.Ready]+counted[queue.Delayed] || st.Processing != counted[queue.Leased] || st.Acked != counted[queue.Acked] || st.Failed != counted[queue.Failed] {
		h.file = append(h.file, fmt.Sprintf("queue %s: Stats say %+v, the lists have %v", q.Name(), st, counted))
	}
}

func (h *history) sortIn(e historyEvent) {
	j := h.jobs[e.ID]
	if j == nil {
		return // violations says so
	}
	switch e.Op {
	case "put":
		if e.Dup {
			j.repeats = append(j.repeats, e)
		} else if j.put == nil {
			j.put = &e
		} else {
			h.file = append(h.file, fmt.Sprintf("two puts were given job %d: %v; %v", e.ID, *j.put, e))
		}
	case "claim":
		j.claims[e.Delivery] = append(j.claims[e.Delivery], e)
	case "cancel":
		if e.Error == "" {
			j.cancels = append(j.cancels, e)
		}
	default:
		j.settles[e.Delivery] = append(j.settles[e.Delivery], e)
	}
}

func (h *history) summary() string {
	return fmt.Sprintf("%d answers about %d jobs; deliveries ended: %v", len(h.events), len(h.jobs), h.ends)
}
