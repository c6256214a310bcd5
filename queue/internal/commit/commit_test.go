package commit_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/queue/internal/commit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type group = commit.Group[string]

func call(op string) *commit.Call[string] { return &commit.Call[string]{Op: op, Weight: 1} }

// join adds calls while somebody leads, and fails if one of them leads.
func join(t *testing.T, g *group, calls ...*commit.Call[string]) {
	t.Helper()
	for _, c := range calls {
		if g.Join(c) {
			t.Fatalf("%s leads beside another", c.Op)
		}
	}
}

func take(g *group, weight int) (ops []string) {
	for _, c := range g.Take(nil, weight, func(string) bool { return true }) {
		ops = append(ops, c.Op)
	}
	return ops
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %q, want %q", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: %q, want %q", what, got, want)
		}
	}
}

func TestALoneCallerLeadsAtOnceAndAgain(t *testing.T) {
	var g group
	for range 3 {
		if !g.Join(call("a")) {
			t.Fatal("nobody leads, and the only caller doesn't")
		}
		same(t, "batch", take(&g, 10))
		g.Pass(1)
	}
}

func TestThoseThatCameMeanwhileAreInTheNextBatchAndAnsweredOnce(t *testing.T) {
	var g group
	g.Join(call("leader"))
	boom := errors.New("boom")
	a, b := call("a"), call("b")
	join(t, &g, a, b)
	batch := g.Take(nil, 10, func(string) bool { return true })
	for i, c := range batch {
		if !g.Answer(c, []error{nil, boom}[i]) {
			t.Errorf("%s's caller is there, and counts as gone", c.Op)
		}
	}
	for _, c := range []*commit.Call[string]{a, b} {
		if lead := <-c.Turn(); lead {
			t.Errorf("%s has its answer and is to lead", c.Op)
		}
	}
	if a.Err() != nil || !errors.Is(b.Err(), boom) {
		t.Errorf("answers %v and %v, want none and boom: one caller's failure is its own", a.Err(), b.Err())
	}
	g.Pass(3)
	if !g.Join(call("next")) {
		t.Error("nobody waited, and the lead was kept")
	}
}

func TestTheLeadGoesToTheOneThatWaitsLongest(t *testing.T) {
	var g group
	g.Join(call("leader"))
	alone, b := &commit.Call[string]{Op: "alone", Alone: true}, call("b")
	join(t, &g, alone, b)
	same(t, "a batch takes nobody that goes alone", take(&g, 10), "b")
	c := call("c")
	join(t, &g, c)
	g.Pass(1)
	if lead := <-alone.Turn(); !lead {
		t.Fatal("the call that goes alone doesn't lead")
	}
	g.Pass(1)
	if lead := <-c.Turn(); !lead {
		t.Fatal("the next doesn't lead")
	}
	g.Pass(1)
}

func TestUrgentCallsGoFirstAndTheRestAsFarAsItFits(t *testing.T) {
	var g group
	g.Join(call("leader"))
	big := &commit.Call[string]{Op: "big", Weight: 100}
	beat := &commit.Call[string]{Op: "beat", Weight: 2, Urgent: true}
	join(t, &g, call("a"), big, call("b"), beat, call("c"))
	same(t, "first batch", take(&g, 4), "beat", "a", "b")
	same(t, "second batch", take(&g, 1), "c")
	same(t, "one too big for any company", take(&g, 99))
	g.Pass(1)
	if lead := <-big.Turn(); !lead {
		t.Error("the big one can only lead, and doesn't")
	}
	g.Pass(1)
}

func TestWhatDoesntFitTheTransactionWaitsForTheNext(t *testing.T) {
	var g group
	g.Join(call("leader"))
	join(t, &g, call("synced"), call("not"))
	if !g.Any(func(op string) bool { return op == "synced" }) || g.Any(func(op string) bool { return op == "other" }) {
		t.Error("Any doesn't tell what waits")
	}
	got := g.Take(nil, 10, func(op string) bool { return op != "synced" })
	if len(got) != 1 || got[0].Op != "not" || g.Waiting() != 1 {
		t.Errorf("took %d, %d still wait; want the one that fits, and the other waiting", len(got), g.Waiting())
	}
}

func TestWhoLeavesBeforeItsBatchIsOutAndWhoIsInABatchCannot(t *testing.T) {
	var g group
	g.Join(call("leader"))
	a, b := call("a"), call("b")
	join(t, &g, a, b)
	if !g.Leave(a) || !errors.Is(a.Err(), commit.ErrLeft) {
		t.Error("a waited, and can't leave")
	}
	batch := g.Take(nil, 10, func(string) bool { return true })
	if len(batch) != 1 || batch[0] != b {
		t.Fatalf("the batch has %d calls, want b", len(batch))
	}
	if g.Leave(b) {
		t.Error("b is in a batch, and has left")
	}
	if g.Abandon(b) {
		t.Error("b hasn't run, and its caller has gone with what it reads and writes")
	}
	g.Ran(batch)
	if !g.Abandon(b) {
		t.Error("b has run and has no answer yet, and can't be abandoned")
	}
	if g.Answer(b, nil) {
		t.Error("b's caller is gone, and counts as there")
	}
}

func TestAnAnswerThatCameFirstCounts(t *testing.T) {
	var g group
	g.Join(call("leader"))
	a := call("a")
	join(t, &g, a)
	for _, c := range g.Take(nil, 10, func(string) bool { return true }) {
		g.Answer(c, nil)
	}
	if g.Leave(a) || g.Abandon(a) {
		t.Error("a was answered, and has left")
	}
	if lead := <-a.Turn(); lead {
		t.Error("the answer was lost")
	}
}

func TestALeadGivenToOneThatLeavesGoesOn(t *testing.T) {
	var g group
	g.Join(call("leader"))
	a, b := call("a"), call("b")
	join(t, &g, a, b)
	g.Pass(1) // to a, who gives up at this moment
	if !g.Leave(a) {
		t.Error("a leads nothing yet, and can't leave")
	}
	if lead := <-b.Turn(); !lead {
		t.Error("the lead was lost with a")
	}
	g.Pass(1)
	if !g.Join(call("c")) {
		t.Error("the lead was lost")
	}
}

// Many callers at once: each is answered once, by whoever leads, and nobody is forgotten.
func TestManyCallersAreAllAnswered(t *testing.T) {
	var g group
	const callers, rounds = 16, 500
	results := make(chan int, callers)
	for range callers {
		go func() {
			n := 0
			for range rounds {
				c := call("x")
				lead := g.Join(c)
				if !lead {
					lead = <-c.Turn()
				}
				if lead {
					g.Gather()
					batch := g.Take(nil, 8, func(string) bool { return true })
					for _, other := range batch {
						g.Answer(other, nil)
					}
					g.Answer(c, nil)
					g.Pass(len(batch) + 1)
				}
				if c.Err() == nil {
					n++
				}
			}
			results <- n
		}()
	}
	for range callers {
		if n := <-results; n != rounds {
			t.Errorf("%d of %d calls were answered", n, rounds)
		}
	}
}

func BenchmarkALoneCaller(b *testing.B) {
	var g group
	b.ReportAllocs()
	for b.Loop() {
		c := &commit.Call[string]{Op: "a", Weight: 1}
		g.Join(c)
		g.Gather()
		g.Take(nil, 10, func(string) bool { return true })
		g.Answer(c, nil)
		g.Pass(1)
	}
}
