//go:build linux

package turnstile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each Line has a descriptor of its own, and so stands for a process of its own.
func open(t *testing.T, path string, times Times) *Line {
	t.Helper()
	l, err := Open(path, times)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "line") }

var (
	endless = Times{Turn: time.Hour, Round: 24 * time.Hour, Linger: time.Hour, Stall: time.Hour}
	short   = Times{Turn: 0, Linger: 0, Stall: time.Hour} // a turn is one transaction
)

// forever is the patience of a test, until it is closed.
type forever chan struct{}

var errImpatient = errors.New("impatient")

func (f forever) Wait(c <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	case <-f:
		return errImpatient
	}
	return nil
}

func enter(t *testing.T, l *Line) {
	t.Helper()
	if err := l.Enter(forever(nil)); err != nil {
		t.Fatal(err)
	}
}

// lead puts a Line at the head of the line.
func lead(t *testing.T, l *Line) {
	t.Helper()
	if !l.Busy() {
		t.Fatal("it stands in line already")
	}
	enter(t, l)
	if l.place != atTurn {
		t.Fatal("nobody is before it, and it has no turn")
	}
}

// queue has a Line stand in line, and returns once it does, with a channel that says when its turn has come.
func queue(t *testing.T, l *Line) <-chan error {
	t.Helper()
	before := l.desk.number(atNext)
	came := make(chan error, 1)
	go func() { came <- l.Enter(forever(nil)) }()
	for l.desk.number(atNext) == before {
		runtime.Gosched()
	}
	return came
}

func arrives(t *testing.T, what string, c <-chan error) {
	t.Helper()
	if err := <-c; err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func waits(t *testing.T, what string, c <-chan error) {
	t.Helper()
	select {
	case err := <-c:
		t.Fatal(what, err)
	default:
	}
}

func TestWhileNobodyStandsInLineNobodyDrawsATicket(t *testing.T) {
	l := open(t, file(t), short)
	for range 3 {
		enter(t, l)
		if l.place != outside || l.desk.number(atNext) != 0 {
			t.Fatal("a lone process has drawn a ticket")
		}
		l.Leave(false)
	}
}

func TestTicketsAreServedInTheirOrder(t *testing.T) {
	path := file(t)
	lines := make([]*Line, 6)
	for i := range lines {
		lines[i] = open(t, path, short)
	}
	lead(t, lines[0])
	came := make([]<-chan error, len(lines))
	for i := 1; i < len(lines); i++ {
		came[i] = queue(t, lines[i])
	}
	for i := 1; i < len(lines); i++ {
		for j := i; j < len(lines); j++ {
			waits(t, "a turn came before the one before it had ended", came[j])
		}
		lines[i-1].Leave(true)
		arrives(t, "the next", came[i])
	}
	again := queue(t, lines[0]) // behind all others
	lines[5].Leave(false)
	arrives(t, "the first, again", again)
}

func TestATurnIsSomeTransactionsLong(t *testing.T) {
	path := file(t)
	a, b := open(t, path, endless), open(t, path, endless)
	lead(t, a)
	came := queue(t, b)
	for range 3 {
		a.Leave(true)
		enter(t, a)
	}
	waits(t, "the turn was lost before it was used up", came)
	a.turn = 0
	a.Leave(true)
	arrives(t, "the one behind", came)
}

func TestTurnsGetShorterWhenManyWait(t *testing.T) {
	for n, want := range map[int64]time.Duration{0: 8, 1: 8, 16: 8, 32: 4, 64: 2, 1000: 2} {
		if got := Defaults.turn(n); got != want*time.Millisecond {
			t.Errorf("with %d in line a turn takes %v, want %d ms", n, got, want)
		}
	}
}

func TestATurnThatNobodyUsesEnds(t *testing.T) {
	path := file(t)
	a := open(t, path, Times{Turn: time.Hour, Round: 24 * time.Hour, Linger: time.Millisecond, Stall: time.Hour})
	b := open(t, path, endless)
	lead(t, a)
	came := queue(t, b)
	a.Leave(false) // and doesn't come back, though expected
	arrives(t, "the one behind", came)
}

func TestAProcessThatTakesItsTimeGivesItsTurnBackAtOnce(t *testing.T) {
	path := file(t)
	a, b := open(t, path, endless), open(t, path, endless)
	lead(t, a)
	came := queue(t, b)
	for range 2 {
		a.cameBack(2 * endless.Linger) // what its callers took between their calls
	}
	a.Leave(false)
	arrives(t, "the one behind", came)
}

func TestADeadProcessIsNotInTheLine(t *testing.T) {
	path := file(t)
	a, b, c := open(t, path, endless), open(t, path, endless), open(t, path, endless)
	lead(t, a)
	impatient := make(forever)
	left := make(chan error, 1)
	go func() { left <- b.Enter(impatient) }()
	for b.desk.number(atNext) < 2 {
		runtime.Gosched()
	}
	came := queue(t, c)
	close(impatient)
	if err := <-left; !errors.Is(err, errImpatient) {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil { // in the line, as at a process's end
		t.Fatal(err)
	}
	waits(t, "the turn came before the first's had ended", came)
	if err := a.Close(); err != nil { // at its turn
		t.Fatal(err)
	}
	arrives(t, "the last", came)
}

func TestOneThatIsStoppedIsPassedBy(t *testing.T) {
	path := file(t)
	times := Times{Turn: 0, Linger: 0, Stall: 20 * time.Millisecond}
	stopped, b, c := open(t, path, times), open(t, path, times), open(t, path, endless)
	lead(t, stopped)
	cameB := queue(t, b)
	cameC := queue(t, c)
	arrives(t, "the one behind it", cameB)
	waits(t, "both behind it came at once", cameC)
	b.Leave(true)
	arrives(t, "the last", cameC)
	c.Leave(true)

	// From now on it doesn't count, and nobody waits for it again.
	enter(t, b)
	if b.place != outside {
		t.Error("the one passed by still makes a line")
	}
	// Running again it gets through, and is a process like any other.
	stopped.Leave(true)
	enter(t, stopped)
	if stopped.place != outside {
		t.Error("it has a turn that has long been over")
	}
}

func TestAPlaceInTheLineOutlivesItsCallersPatience(t *testing.T) {
	path := file(t)
	a, b, c := open(t, path, short), open(t, path, short), open(t, path, short)
	lead(t, a)
	impatient := make(forever)
	close(impatient)
	if err := b.Enter(impatient); !errors.Is(err, errImpatient) {
		t.Fatal(err)
	}
	came := queue(t, c)
	next := make(chan error, 1) // the next caller of b's process
	go func() { next <- b.Enter(forever(nil)) }()
	a.Leave(true)
	arrives(t, "b", next)
	waits(t, "c came before b, who was first", came)
	b.Quit()
	arrives(t, "c", came)
}

func TestAStuckDeskMeansNoLine(t *testing.T) {
	path := file(t)
	a, b := open(t, path, endless), open(t, path, endless)
	if !a.desk.enter() {
		t.Fatal("a free desk can't be had")
	}
	if !b.Busy() {
		t.Fatal("not told to stand in line")
	}
	enter(t, b)
	if b.place != outside || b.Busy() {
		t.Error("without a ticket it must try for the lock by itself")
	}
	a.desk.leave()
	b.desk.stuck = time.Time{}
	b.insist = true
	enter(t, b)
	if b.place != atTurn {
		t.Error("the desk is free again, and it drew no ticket")
	}
}

func TestAnEmptiedFileOnlyCostsTheOrder(t *testing.T) {
	path := file(t)
	a, b, c := open(t, path, short), open(t, path, short), open(t, path, short)
	lead(t, a)
	came := queue(t, b)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	again := queue(t, c) // its number starts anew, and those that are taken are left out
	a.Leave(false)
	arrives(t, "b", came)
	b.Leave(false)
	arrives(t, "c", again)
}

func TestALineNeedsADirectory(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "no", "line"), Defaults); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
}

func BenchmarkNobodyElse(b *testing.B) {
	l, err := Open(filepath.Join(b.TempDir(), "line"), Defaults)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for b.Loop() {
		if err := l.Enter(forever(nil)); err != nil {
			b.Fatal(err)
		}
		l.Leave(false)
	}
}
