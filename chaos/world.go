package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// world is all that is known after a round: what the processes wrote down, and what the file says.
type world struct {
	calls    []*call
	rows     map[int64]row
	stats    []queue.Stats
	findings []string // of Check, and of those who read the file
	now      time.Time
	lease    time.Duration   // the longest that anybody asks for
	purged   map[string]bool // queues whose acked jobs may be gone
	workers  map[string]bool // queues that Workers claim from: they hold jobs that no handler has seen
	drained  bool            // every job was to be brought to an end
}

// row is a job in the file, with its failed deliveries.
type row struct {
	queue.Record
	story []queue.Delivery
}

// story is all that is known of one job.
type story struct {
	id      int64
	row     *row // nil: it is not in the file
	queue   string
	token   string
	key     string
	put     *call
	claims  map[int64][]*call
	highest int64             // delivery that anybody tells of
	settles map[int64][]*call // by delivery
}

// tokenOf finds the token in a payload: all of it up to a bar, or the field of a typed job.
func tokenOf(payload []byte) string {
	var typed task
	if json.Unmarshal(payload, &typed) == nil && typed.Token != "" {
		return typed.Token
	}
	token, _, _ := strings.Cut(string(payload), "|")
	return token
}

// task is the payload of the typed queue.
type task struct {
	Token string
	Pad   string `json:",omitempty"`
}

// index is a world sorted by job.
type index struct {
	*world
	stories map[int64]*story
	ids     []int64                   // of stories, in order
	tokens  map[string]map[int64]bool // the jobs seen with a token
	puts    map[string][]*call        // the puts of a token, and the acks that put it as their follow-up
	imports map[string][]*call        // the attempts at a batch of an import, by its first token
}

func (w *world) index() *index {
	x := &index{world: w, stories: map[int64]*story{}, tokens: map[string]map[int64]bool{},
		puts: map[string][]*call{}, imports: map[string][]*call{}}
	for id, r := range w.rows {
		s := x.story(id)
		s.row, s.queue, s.key, s.highest = &r, r.Queue, r.JobID, r.Delivery
		x.saw(s, tokenOf(r.Payload))
	}
	for _, c := range w.calls {
		switch c.Op {
		case opPut:
			x.sortPut(c)
		case opImport:
			x.sortImport(c)
		case opClaim:
			for _, j := range c.Jobs {
				s := x.story(j.ID)
				s.claims[j.Delivery] = append(s.claims[j.Delivery], c)
				s.queue, s.key, s.highest = cmp.Or(s.queue, c.Queue), cmp.Or(s.key, j.Key), max(s.highest, j.Delivery)
				x.saw(s, j.Token)
			}
		case opNote, opGauge:
		default:
			j := c.Jobs[0]
			s := x.story(j.ID)
			if c.Forged {
				continue
			}
			s.settles[j.Delivery] = append(s.settles[j.Delivery], c)
			s.queue, s.highest = cmp.Or(s.queue, c.Queue), max(s.highest, j.Delivery)
			if c.Follow != nil {
				x.puts[c.Follow.Token] = append(x.puts[c.Follow.Token], c)
			}
		}
	}
	x.ids = slices.Sorted(maps.Keys(x.stories))
	return x
}

func (x *index) sortPut(c *call) {
	for _, j := range c.Jobs {
		x.puts[j.Token] = append(x.puts[j.Token], c)
		if !c.took() {
			continue
		}
		s := x.story(j.ID)
		s.queue, s.key = cmp.Or(s.queue, c.Queue), cmp.Or(s.key, j.Key)
		if !j.Dup {
			s.put = c
			x.saw(s, j.Token)
		}
	}
}

// sortImport takes all attempts at a batch for one put of its tokens.
func (x *index) sortImport(c *call) {
	first := c.Jobs[0].Token
	if len(x.imports[first]) == 0 {
		for _, j := range c.Jobs {
			x.puts[j.Token] = append(x.puts[j.Token], c)
		}
	}
	x.imports[first] = append(x.imports[first], c)
}

func (x *index) story(id int64) *story {
	s := x.stories[id]
	if s == nil {
		s = &story{id: id, claims: map[int64][]*call{}, settles: map[int64][]*call{}}
		x.stories[id] = s
	}
	return s
}

func (x *index) saw(s *story, token string) {
	if x.tokens[token] == nil {
		x.tokens[token] = map[int64]bool{}
	}
	x.tokens[token][s.id] = true
	s.token = cmp.Or(s.token, token)
}

// mayBeAcked tells whether an ack of the job was answered with success, or may have happened.
func (s *story) mayBeAcked() bool {
	for n := range s.settles {
		if s.anyOf(n, opAck, func(c *call) bool { return c.took() || c.open() }) {
			return true
		}
	}
	return false
}

func (s *story) anyOf(n int64, op string, is func(*call) bool) bool {
	return slices.ContainsFunc(s.settles[n], func(c *call) bool { return c.Op == op && is(c) })
}

// ended are the calls that ended a delivery, as they were told.
func (s *story) ended(n int64) (took []*call) {
	for _, c := range s.settles[n] {
		if c.took() {
			took = append(took, c)
		}
	}
	return took
}

// openEnds tells whether a call may have ended a delivery.
func (s *story) openEnds(n int64) bool {
	return slices.ContainsFunc(s.settles[n], (*call).open)
}

// kept is the entry of a delivery in the job's history.
func (r *row) kept(n int64) (queue.Delivery, bool) {
	i := slices.IndexFunc(r.story, func(d queue.Delivery) bool { return d.Number == n })
	if i < 0 {
		return queue.Delivery{}, false
	}
	return r.story[i], true
}

// historyKept is how many failed deliveries of a job the file keeps.
const historyKept = 20

// forgotten tells whether the entry of a delivery may have made room for later ones.
func (r *row) forgotten(n int64) bool {
	return len(r.story) >= historyKept && n < r.story[0].Number
}

func (s *story) String() string {
	if s.row == nil {
		return fmt.Sprintf("job %d (%s, not in the file)", s.id, s.token)
	}
	r := s.row
	return fmt.Sprintf("job %d (%s, %s, delivery %d, attempt %d of %d)", s.id, s.token, r.State, r.Delivery, r.Attempts, r.MaxAttempts)
}

type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }
