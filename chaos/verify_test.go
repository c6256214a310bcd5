package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// The verifier must pass a sound history and tell what is wrong with each of many unsound ones.

// history builds a world, a call at a time.
type history struct {
	world
	n         int64
	uncounted bool // rows were changed after the counters
}

func (h *history) call(proc, op, name string, err string, jobs ...job) *call {
	h.n++
	c := &call{entry: entry{N: h.n, Op: op, Queue: name, Jobs: jobs, Err: err}, Proc: proc, Answered: err != noAnswer}
	if !c.Answered {
		c.Err = ""
	}
	h.calls = append(h.calls, c)
	return c
}

const noAnswer = "no answer"

func (h *history) row(id int64, token string, state queue.State, delivery int64, attempts int, story ...queue.Delivery) {
	r := queue.Record{ID: id, Queue: "bare", State: state, Payload: []byte(token), Delivery: delivery, Attempts: attempts, MaxAttempts: 3}
	switch state {
	case queue.Leased:
		r.Receipt, r.LeaseUntil = "receipt", h.now.Add(time.Second)
	case queue.Failed:
		r.Reason = queue.LeaseExpired
	}
	h.rows[id] = row{Record: r, story: story}
}

func (h *history) edit(id int64, change func(*row)) {
	r := h.rows[id]
	change(&r)
	h.rows[id] = r
}

func ended(n int64, outcome string) queue.Delivery {
	return queue.Delivery{Number: n, Attempt: int(n), Outcome: outcome}
}

func held(id, delivery int64, attempt int, token string) job {
	return job{ID: id, Delivery: delivery, Attempt: attempt, Max: 3, Token: token}
}

// sound is a history with something of everything. Its jobs: 1 nacked and then acked with follow-up 2, which is ready; 3 and 4
// a batch, one leased, one released; 5 keyed and put twice, its lease expired on all three deliveries; 6 acked and purged; 7
// failed for good, 8 put by a process that was killed, and acked by one that was.
func sound() *history {
	h := &history{world: world{now: time.UnixMilli(1e12), lease: time.Second, rows: map[int64]row{},
		purged: map[string]bool{"brief": true}, workers: map[string]bool{}}}
	h.call("a", opPut, "bare", "", job{ID: 1, Token: "t1"})
	h.call("c", opClaim, "bare", "", held(1, 1, 1, "t1"))
	h.call("c", opNack, "bare", "", job{ID: 1, Delivery: 1})
	h.call("c", opClaim, "bare", "", held(1, 2, 2, "t1"))
	ack := h.call("c", opAck, "bare", "", job{ID: 1, Delivery: 2})
	ack.Follow, ack.On = &job{Token: "t2"}, "bare"
	h.row(1, "t1", queue.Acked, 2, 2, ended(1, "nacked"))
	h.row(2, "t2", queue.Ready, 0, 0)

	h.call("a", opPut, "bare", "", job{ID: 3, Token: "t3"}, job{ID: 4, Token: "t4"})
	h.call("c", opClaim, "bare", "", held(3, 1, 1, "t3"), held(4, 1, 1, "t4"))
	h.call("c", opRelease, "bare", "", job{ID: 4, Delivery: 1})
	h.row(3, "t3", queue.Leased, 1, 1)
	h.row(4, "t4", queue.Ready, 1, 0)

	h.call("a", opPut, "bare", "", job{ID: 5, Token: "t5", Key: "k"})
	h.call("b", opPut, "bare", "", job{ID: 5, Token: "t5b", Key: "k", Dup: true})
	h.call("c", opClaim, "bare", "", job{ID: 5, Delivery: 1, Attempt: 1, Max: 3, Token: "t5", Key: "k"})
	h.call("c", opAck, "bare", errLost, job{ID: 5, Delivery: 1})
	h.call("d", opClaim, "bare", "", job{ID: 5, Delivery: 2, Attempt: 2, Max: 3, Token: "t5", Key: "k"})
	h.call("d", opClaim, "bare", noAnswer).Want = 1
	h.row(5, "t5", queue.Failed, 3, 3, ended(1, expired), ended(2, expired), ended(3, expired))
	h.edit(5, func(r *row) { r.JobID = "k" })

	h.call("a", opPut, "brief", "", job{ID: 6, Token: "t6"})
	h.call("c", opClaim, "brief", "", held(6, 1, 1, "t6"))
	h.call("c", opAck, "brief", "", job{ID: 6, Delivery: 1})

	h.call("a", opPut, "bare", "", job{ID: 7, Token: "t7"})
	h.call("c", opClaim, "bare", "", held(7, 1, 1, "t7"))
	h.call("c", opFail, "bare", "", job{ID: 7, Delivery: 1})
	h.row(7, "t7", queue.Failed, 1, 1, ended(1, "failed"))
	h.edit(7, func(r *row) { r.Reason = queue.Permanent })

	h.call("b", opPut, "bare", noAnswer, job{Token: "t8"})
	h.call("d", opClaim, "bare", "", held(8, 1, 1, "t8"))
	h.call("d", opAck, "bare", noAnswer, job{ID: 8, Delivery: 1})
	h.row(8, "t8", queue.Acked, 1, 1)
	h.call("b", opPut, "bare", noAnswer, job{Token: "t9"}, job{Token: "t10"}) // never stored
	h.call("e", opImport, "bare", noAnswer, job{Token: "t11"}, job{Token: "t12"})
	h.call("f", opImport, "bare", "", job{Token: "t11"}, job{Token: "t12"})
	h.row(11, "t11", queue.Ready, 0, 0)
	h.row(12, "t12", queue.Ready, 0, 0)
	h.call("c", opAck, "bare", errLost, job{ID: 4, Delivery: 1}).Forged = true
	h.recount()
	return h
}

func (h *history) recount() {
	byQueue := map[string]*queue.Stats{}
	for _, r := range h.rows {
		st := byQueue[r.Queue]
		if st == nil {
			st = &queue.Stats{Queue: r.Queue}
			byQueue[r.Queue] = st
		}
		switch r.State {
		case queue.Ready:
			st.Ready++
		case queue.Leased:
			st.Processing++
		case queue.Acked:
			st.Acked++
		case queue.Failed:
			st.Failed++
		}
	}
	h.stats = nil
	for _, st := range byQueue {
		h.stats = append(h.stats, *st)
	}
}

func TestTheVerifierPassesASoundHistory(t *testing.T) {
	for _, v := range sound().violations() {
		t.Error(v)
	}
}

// wrongs are ways to spoil the sound history, each with what the verifier must say of it.
type wrongs map[string]struct {
	spoil func(*history)
	says  string
}

func (all wrongs) areTold(t *testing.T) {
	t.Helper()
	for name, wrong := range all {
		t.Run(name, func(t *testing.T) {
			h := sound()
			wrong.spoil(h)
			if h.uncounted {
				h.recount() // the counters keep up with the rows, so that only the rule in question is broken
			}
			if text := strings.Join(h.violations(), "\n"); !strings.Contains(text, wrong.says) {
				t.Errorf("the violations don't say %q:\n%s", wrong.says, text)
			}
		})
	}
}

// removed takes a row out of the file.
func removed(ids ...int64) func(*history) {
	return func(h *history) {
		for _, id := range ids {
			delete(h.rows, id)
		}
		h.uncounted = true
	}
}

// changed changes a row.
func changed(id int64, change func(*row)) func(*history) {
	return func(h *history) { h.edit(id, change); h.uncounted = true }
}

// told changes a call: the first of that kind about a job's delivery.
func told(op string, id, delivery int64, change func(*call)) func(*history) {
	return func(h *history) {
		i := slices.IndexFunc(h.calls, func(c *call) bool {
			return c.Op == op && len(c.Jobs) > 0 && c.Jobs[0].ID == id && c.Jobs[0].Delivery == delivery
		})
		change(h.calls[i])
	}
}

// called adds a call on bare.
func called(op, err string, jobs ...job) func(*history) {
	return func(h *history) { h.call("x", op, "bare", err, jobs...) }
}

// stored adds a row that is ready.
func stored(id int64, token string) func(*history) {
	return func(h *history) { h.row(id, token, queue.Ready, 0, 0); h.uncounted = true }
}

func both(one, other func(*history)) func(*history) {
	return func(h *history) { one(h); other(h) }
}

func TestTheVerifierTellsOfWrongPuts(t *testing.T) {
	const gone = "gone without an ack and a purge"
	imported := []job{{Token: "t11"}, {Token: "t12"}}
	wrongs{
		"an unacked job is gone":        {removed(7), gone},
		"an acked job is gone unpurged": {removed(1), gone},
		"a put's job is gone":           {removed(4), gone},
		"a row nobody put":              {stored(9, "stranger"), `0 puts have the token "stranger"`},
		"a put that made two rows":      {stored(9, "t8"), `the one put of "t8" has made the jobs [8 9]`},
		"half an unanswered batch":      {stored(9, "t9"), "1 of its 2 jobs are there"},
		"a put that failed is there":    {both(called(opPut, errEnded, job{Token: "x"}), stored(9, "x")), "nothing was stored"},
		"a put's error is another's":    {called(opPut, errLost, job{Token: "x"}), "a put isn't for"},
		"two jobs of one key":           {both(called(opPut, "", job{ID: 9, Token: "x", Key: "k"}), stored(9, "x")), `key "k" of queue bare is one job`},
		"another key":                   {changed(5, func(r *row) { r.JobID = "other" }), `has queue bare, key "other"`},
		"another queue":                 {changed(4, func(r *row) { r.Queue = "brief" }), "has queue brief"},
		"another payload":               {changed(4, func(r *row) { r.Payload = []byte("y") }), "0 puts have the token"},
		"half a batch of an import":     {removed(12), "1 of 2 jobs are there"},
		"an import that is not there":   {removed(11, 12), "0 of 2 jobs are there"},
		"an import brought in twice":    {called(opImport, "", imported...), "2 processes were told"},
		"an imported job twice":         {stored(13, "t12"), `the one put of "t12" has made the jobs [12 13]`},
	}.areTold(t)
}

func TestTheVerifierTellsOfWrongDeliveries(t *testing.T) {
	wrongs{
		"a delivery to two":              {called(opClaim, "", held(1, 2, 2, "t1")), "was given to 2 claims"},
		"a delivery the file lacks":      {called(opClaim, "", held(2, 1, 1, "t2")), "the file doesn't know"},
		"a claim's error is another's":   {called(opClaim, errLost), "a claim isn't for"},
		"jobs with an error":             {told(opClaim, 1, 1, func(c *call) { c.Err = errEnded }), "with its error"},
		"a claim of other bytes":         {told(opClaim, 1, 1, func(c *call) { c.Jobs[0].Token = "y" }), `as "y"`},
		"an attempt too many":            {told(opClaim, 1, 1, func(c *call) { c.Jobs[0].Attempt = 4 }), "as attempt 4 of 3"},
		"an attempt given back":          {changed(5, func(r *row) { r.Attempts = 2 }), "make 3 to 3 attempts"},
		"a release that cost an attempt": {changed(4, func(r *row) { r.Attempts = 1 }), "make 0 to 0 attempts"},
		"deliveries that went to nobody": {changed(4, func(r *row) { r.Delivery = 3 }), "only 1 can have gone"},
	}.areTold(t)
}

func TestTheVerifierTellsOfWrongEnds(t *testing.T) {
	const cameBack = "and it went on"
	again := func(h *history) {
		h.call("c", opClaim, "brief", "", held(6, 2, 2, "t6"))
		h.call("c", opAck, "brief", "", job{ID: 6, Delivery: 2})
	}
	forged := func(h *history) { h.call("c", opAck, "bare", "", job{ID: 4, Delivery: 1}).Forged = true }
	leasedAgain := func(r *row) { r.State, r.Receipt = queue.Leased, "receipt" }
	unanswered := func(c *call) { c.Answered = false }
	wrongs{
		"an ack of an expired lease":         {told(opAck, 5, 1, func(c *call) { c.Err = "" }), "should have one end"},
		"a nack that isn't kept":             {changed(1, func(r *row) { r.story = nil }), `the history says "" after nack`},
		"a lease's end that nobody recorded": {changed(5, func(r *row) { r.story = r.story[1:] }), "should have one end"},
		"a history nobody made":              {changed(8, func(r *row) { r.story = []queue.Delivery{ended(1, "nacked")} }), "nobody has ended it so"},
		"two entries for one delivery":       {changed(5, func(r *row) { r.story[1] = r.story[0] }), "its history has the delivery numbers"},
		"an acked job that came back":        {changed(1, func(r *row) { r.State = queue.Ready }), cameBack},
		"an acked job delivered again":       {changed(1, func(r *row) { r.State, r.Delivery, r.Attempts = queue.Ready, 3, 3 }), cameBack},
		"acked twice, and purged":            {again, "was acked 2 times"},
		"acked by nobody":                    {changed(4, func(r *row) { r.State = queue.Acked }), "nobody has acked"},
		"failed by nobody":                   {changed(4, func(r *row) { r.State, r.Reason = queue.Failed, queue.Permanent }), `failed as "permanent"`},
		"expired, with deliveries left":      {changed(5, func(r *row) { r.MaxAttempts = 4 }), `failed as "lease_expired"`},
		"the last delivery, and ready":       {changed(5, func(r *row) { r.State, r.Reason = queue.Ready, "" }), "isn't in the dead letters"},
		"a settle without a claim":           {called(opAck, errLost, job{ID: 2, Delivery: 1}), "its process never had"},
		"a settle's error is another's":      {told(opAck, 5, 1, func(c *call) { c.Err = errEmpty }), "settling isn't for"},
		"a forged ack that isn't refused":    {forged, "wasn't refused"},
		"a follow-up that isn't there":       {removed(2), `follow-up "t2" isn't there`},
		"a follow-up lost with its answer":   {both(told(opAck, 1, 2, unanswered), removed(2)), "was acked by nothing else"},
		"a follow-up without its ack":        {both(told(opAck, 1, 2, unanswered), changed(1, leasedAgain)), "and the ack of"},
		"a follow-up of a failed ack":        {told(opAck, 1, 2, func(c *call) { c.Err = errLost }), "failed, and its follow-up"},
	}.areTold(t)
}

func TestTheVerifierTellsOfWrongFiles(t *testing.T) {
	wrongs{
		"a lease without an end":       {changed(3, func(r *row) { r.LeaseUntil = time.Time{} }), "is leased with receipt"},
		"a lease that is far too long": {changed(3, func(r *row) { r.LeaseUntil = r.LeaseUntil.Add(time.Hour) }), "is leased with receipt"},
		"a lease without a receipt":    {changed(3, func(r *row) { r.Receipt = "" }), "is leased with receipt"},
		"not drained":                  {func(h *history) { h.drained = true }, "has come to no end"},
		"counters that are off":        {func(h *history) { h.stats[0].Acked++ }, "stats say"},
		"no counters":                  {func(h *history) { h.stats = nil }, "and no stats"},
		"something that a reader saw":  {called(opNote, "counters off"), "x saw: counters off"},
		"something that check finds":   {func(h *history) { h.findings = []string{"page 7"} }, "page 7"},
	}.areTold(t)
}

func TestAJournalEndsWhereItsProcessWasKilled(t *testing.T) {
	text := `{"N":1,"Op":"put","Queue":"bare","Jobs":[{"Token":"a"}]}
{"N":2,"Op":"claim","Queue":"bare","Want":1}
{"N":1,"Answer":true,"Jobs":[{"ID":7,"Dup":true}]}
{"N":3,"Op":"put","Queue":"bare","Jobs":[{"Token":"b"}]}
{"N":3,"Answer":true,"Jo`
	calls, err := readJournal("p", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) != 3 || !calls[0].took() || calls[0].Jobs[0] != (job{ID: 7, Token: "a", Dup: true}) || calls[1].Answered || calls[2].Answered {
		t.Errorf("read %v %v %v", calls[0], calls[1], calls[2])
	}
	for name, bad := range map[string]string{"torn in the middle": `{"N":1,"Op` + "\n" + text, "an answer to nothing": `{"N":9,"Answer":true}` + "\n"} {
		if _, err := readJournal("p", []byte(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOpenCallsOfTheKilledAreTallied(t *testing.T) {
	got := sound().unanswered(map[string]string{"b": "after-commit", "d": "before-commit"})
	if want := (tally{Puts: 2, PutsThere: 1}); got["after-commit"] != want {
		t.Errorf("puts: %+v, want %+v", got["after-commit"], want)
	}
	if want := (tally{Settles: 1, EndsThere: 1}); got["before-commit"] != want {
		t.Errorf("acks: %+v, want %+v", got["before-commit"], want)
	}
}
