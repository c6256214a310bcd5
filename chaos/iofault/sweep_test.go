package iofault

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

// Every operation meets each kind of fault at each call where it can come.
func TestEachOperationOnAFailingDiskTellsTheTruth(t *testing.T) {
	const shards = 2
	for shard := range shards {
		t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			for i, op := range operations {
				if i%shards == shard {
					t.Run(op.name, func(t *testing.T) { s.sweep(t, op, i/shards) })
				}
			}
		})
	}
}

func (s *stand) sweep(t *testing.T, op operation, turn int) {
	met := 0
	for i, f := range faults(turn) {
		p := plan{op, durability(f, i), f}
		for j, nth := range places(s.try(t, p).Seen) { // without a place, it only counts
			p.fault.Nth = nth
			if s.try(t, p).Fired > 0 {
				met++
			}
			if long || i == 0 && j == 0 {
				s.tryKilled(t, p)
			}
			if t.Failed() {
				t.Fatalf("that was %v", p)
			}
		}
	}
	if met == 0 && (long || op.changes != nothing) {
		t.Error("no fault has come at all")
	}
}

// durability is that of an attempt: a sync that is to fail must come, and otherwise each has its turn.
func durability(f preload.Fault, turn int) queue.Durability {
	if f.Calls == preload.Sync {
		return queue.Full
	}
	return []queue.Durability{queue.Full, queue.Balanced, queue.Normal}[turn%3]
}

// places are those of n calls that are to fail: in the short form the first and one by chance; in the long form all, but of
// hundreds that are alike only some.
func places(n uint64) (all []uint64) {
	some := uint64(1)
	if long {
		some = 150
	}
	if n <= some+1 {
		for nth := uint64(1); nth <= n; nth++ {
			all = append(all, nth)
		}
		return all
	}
	for range some {
		all = append(all, 2+rand.Uint64N(n-1))
	}
	return append(all, 1)
}

// Many calls, some of which meet a checkpoint or share a commit with others.
func TestManyCallsOnAFailingDiskAreEachToldTheTruth(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for turn, name := range []string{"many pages", "many callers"} {
		t.Run(name, func(t *testing.T) {
			for _, f := range faults(turn + 1) {
				for _, nth := range places(s.trySeries(t, name, f).Seen) {
					f.Nth = nth
					s.trySeries(t, name, f)
					if t.Failed() {
						t.Fatalf("that was %s, %s", name, faultText(f))
					}
				}
			}
		})
	}
}

// Copying the WAL into the database is nobody's call, so only the log can tell that it fails.
func TestAWALThatCannotBeCopiedIsLoggedOnceAndItsWriterGoesOn(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, f := range []preload.Fault{
		{Calls: preload.Write, Files: preload.DB, Errno: syscall.EIO, Nth: 1, Sticky: true},
		{Calls: preload.Sync, Files: preload.DB, Errno: syscall.EIO, Nth: 1, Sticky: true},
	} {
		r := s.trySeries(t, "many pages", f)
		if r.Logged != 1 {
			t.Errorf("%s: %d lines, want 1", faultText(f), r.Logged)
		}
		for _, a := range r.Series {
			if a.Err != "" {
				t.Errorf("%s: %v", a.Key, a)
			}
		}
	}
}

func (s *stand) trySeries(t *testing.T, name string, f preload.Fault) report {
	t.Helper()
	dir := s.lay(t)
	must(t, s.child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full}))
	r := s.child.does(t, order{Do: "series", Op: name, Fault: &f})
	must(t, s.child.does(t, order{Do: "next"}))
	must(t, s.child.does(t, order{Do: "close"}))
	survey(t, dir)
	eachAgrees(t, dir, f, r)
	s.leave(t, dir)
	return r
}

// eachAgrees holds the answers of a series against the file.
func eachAgrees(t *testing.T, dir string, f preload.Fault, r report) {
	t.Helper()
	st, err := queue.Open(dir, queue.MustExist())
	ok(t, err)
	defer func() { ok(t, st.Close()) }()
	for _, a := range r.Series {
		holds(t, f, report{answer: a, Fired: r.Fired})
		if is := stored(t, st.Default(), a.Key); is != (a.Err == "") && !a.Unknown {
			t.Errorf("%s: stored is %v, the answer was %v", a.Key, is, a)
		}
	}
}
