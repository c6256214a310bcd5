//go:build linux

package doorbell_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/queue/internal/doorbell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var jobs, room = doorbell.KeyOf("jobs"), doorbell.KeyOf("room")

// process is a Bell with descriptors of its own, and so stands for a process.
type process struct {
	*doorbell.Bell
	heard chan doorbell.News
}

func open(t *testing.T, path string) *process {
	t.Helper()
	p := &process{heard: make(chan doorbell.News, 100)}
	b, err := doorbell.Open(path, func(n doorbell.News) { p.heard <- n })
	if err != nil {
		t.Fatal(err)
	}
	p.Bell = b
	t.Cleanup(func() { ok(t, b.Close()) })
	return p
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *process) sleepsOn(t *testing.T, key doorbell.Key) *process {
	t.Helper()
	ok(t, p.Listen(key))
	return p
}

// silent fails if anything was rung before a last ring of our own, which it waits for.
func (p *process) silent(t *testing.T, ringer *process) {
	t.Helper()
	last := doorbell.KeyOf(t.Name())
	ok(t, p.Listen(last))
	ringer.Ring(last, 1)
	if n := <-p.heard; n.Key != last {
		t.Errorf("woken for nothing: %+v", n)
	}
	p.Unlisten(last)
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "bell") }

func TestASleeperIsWokenAndOnlyForItsOwnKey(t *testing.T) {
	path := file(t)
	ringer, receiver, putter := open(t, path), open(t, path).sleepsOn(t, jobs), open(t, path).sleepsOn(t, room)
	ringer.Ring(jobs, 1)
	if n := <-receiver.heard; n.Key != jobs || n.N != 1 {
		t.Errorf("heard %+v, want news of one job", n)
	}
	ringer.Ring(room, 2)
	if n := <-putter.heard; n.Key != room || n.N != 2 {
		t.Errorf("heard %+v, want news of two places", n)
	}
	receiver.silent(t, ringer)
	putter.silent(t, ringer)
}

func TestNobodyIsWokenWhoIsAwake(t *testing.T) {
	path := file(t)
	ringer, receiver := open(t, path), open(t, path)
	ringer.Ring(jobs, 1)
	receiver.sleepsOn(t, jobs)
	receiver.Unlisten(jobs)
	ringer.Ring(jobs, 1)
	receiver.silent(t, ringer)
}

func TestNewsForKWakeAtMostK(t *testing.T) {
	path := file(t)
	ringer := open(t, path)
	heard := make(chan int, 100)
	for range 8 {
		b, err := doorbell.Open(path, func(n doorbell.News) { heard <- n.N })
		ok(t, err)
		t.Cleanup(func() { ok(t, b.Close()) })
		ok(t, b.Listen(jobs))
	}
	for _, k := range []int{1, 3, 8, 21} {
		ringer.Ring(jobs, k)
		sum, processes := 0, 0
		for ; processes < min(k, 8); processes++ {
			sum += <-heard
		}
		if sum != k {
			t.Errorf("news for %d were told for %d", k, sum)
		}
	}
	if len(heard) != 0 {
		t.Error("more were woken than there was news for")
	}
}

func TestAProcessDoesntRingForItself(t *testing.T) {
	path := file(t)
	a := open(t, path).sleepsOn(t, jobs)
	a.Ring(jobs, 1)
	a.silent(t, open(t, path))
}

func TestWhatIsTooMuchForOneGoesToTheNextAndNotInCircles(t *testing.T) {
	path := file(t)
	ringer, a, b := open(t, path), open(t, path).sleepsOn(t, jobs), open(t, path).sleepsOn(t, jobs)
	ringer.Ring(jobs, 10)
	n := <-a.heard
	<-b.heard
	n.N = 4 // one of its five was enough for a
	a.Forward(n)
	passed := <-b.heard
	if passed.N != 4 {
		t.Errorf("b heard %+v, want what was too much for a", passed)
	}
	b.Forward(passed)
	a.silent(t, ringer)
}

func TestTheDeadAreNotRung(t *testing.T) {
	path := file(t)
	ringer, dead, alive := open(t, path), open(t, path).sleepsOn(t, jobs), open(t, path).sleepsOn(t, jobs)
	ok(t, dead.Close())
	for range 20 { // a sleeper is chosen by lot
		ringer.Ring(jobs, 1)
		<-alive.heard
	}
	if !errors.Is(dead.Listen(jobs), doorbell.ErrDeaf) {
		t.Error("a closed bell listens")
	}
	dead.Ring(jobs, 1)
	alive.silent(t, ringer)
}

func TestAFIFOThatAKilledProcessLeftIsUsedAgain(t *testing.T) {
	path := file(t)
	first := open(t, path).sleepsOn(t, jobs)
	leftOver := path + ".0"
	st, err := os.Lstat(leftOver)
	ok(t, err)
	if st.Mode() != fs.ModeNamedPipe|0o600 {
		t.Errorf("the FIFO is %v, want for the owner only", st.Mode())
	}
	ok(t, os.Rename(leftOver, path+".kept"))
	ok(t, first.Close())
	ok(t, os.Rename(path+".kept", leftOver))

	ringer, receiver := open(t, path), open(t, path).sleepsOn(t, jobs)
	ringer.Ring(jobs, 1)
	<-receiver.heard
	ok(t, receiver.Close())
	if _, err := os.Lstat(leftOver); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close the FIFO is there: %v", err)
	}
}

func TestAFileOfSomebodyElsesIsNotTouched(t *testing.T) {
	path := file(t)
	mine := path + ".0"
	ok(t, os.WriteFile(mine, []byte("mine"), 0o600))
	ringer, receiver := open(t, path), open(t, path).sleepsOn(t, jobs)
	ringer.Ring(jobs, 1)
	<-receiver.heard
	ok(t, receiver.Close())
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestMoreProcessesThanSlots(t *testing.T) {
	path := file(t)
	var deaf int
	for range 258 {
		p := open(t, path)
		if err := p.Listen(jobs); errors.Is(err, doorbell.ErrDeaf) {
			deaf++
		} else {
			ok(t, err)
		}
	}
	if deaf != 2 {
		t.Errorf("%d are deaf, want 2: the others have a slot", deaf)
	}
}

func TestABellNeedsADirectory(t *testing.T) {
	if _, err := doorbell.Open(filepath.Join(t.TempDir(), "no", "bell"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
}

func BenchmarkNobodySleeps(b *testing.B) {
	bell, err := doorbell.Open(filepath.Join(b.TempDir(), "bell"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = bell.Close() }()
	for b.Loop() {
		bell.Ring(jobs, 1)
	}
}

// There and back between two Bells.
func BenchmarkRing(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bell")
	back := make(chan struct{}, 1)
	bells := make([]*doorbell.Bell, 2)
	for i := range bells {
		var err error
		bells[i], err = doorbell.Open(path, func(doorbell.News) {
			if i == 1 {
				bells[1].Ring(room, 1)
			} else {
				back <- struct{}{}
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = bells[i].Close() }()
	}
	for i, key := range []doorbell.Key{room, jobs} {
		if err := bells[i].Listen(key); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		bells[0].Ring(jobs, 1)
		<-back
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/way")
}
