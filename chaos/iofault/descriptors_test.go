package iofault

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

// withDescriptors carries something out while the process may have n more files open.
func withDescriptors(n int, do func() report) (r report, err error) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		return r, err
	}
	if err := startPoller(); err != nil {
		return r, err
	}
	limit := before
	limit.Cur = 0
	for free := 0; free < n; limit.Cur++ { // descriptors are given out from the lowest that is free
		if _, err := unix.FcntlInt(uintptr(limit.Cur), unix.F_GETFD, 0); err != nil {
			free++
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return r, err
	}
	r = do()
	return r, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
}

// startPoller has the runtime open the descriptors of its own that it can't do without.
func startPoller() error {
	r, w, err := os.Pipe()
	return errors.Join(err, r.Close(), w.Close())
}

// A process that may open no more files is told so at whichever file that is, and goes on when it may.
func TestAProcessWithoutFreeDescriptorsIsToldSo(t *testing.T) {
	t.Parallel()
	told := 0
	for n := 1; ; n++ {
		child := startChild(t)
		dir := copyBed(t)
		r := child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full, Descriptors: n})
		if r.Err == "" {
			break
		}
		told++
		if !r.is("ErrIO") {
			t.Errorf("with %d descriptors: %v, want ErrIO", n, r.answer)
		}
		must(t, child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full}))
		must(t, child.does(t, order{Do: "close"}))
		survey(t, dir)
	}
	child := startChild(t)
	for _, op := range operations {
		dir := copyBed(t)
		must(t, child.does(t, order{Do: "open", Dir: dir, Durability: queue.Full}))
		r := child.does(t, order{Do: "run", Op: op.name, Descriptors: 1})
		if r.Err != "" {
			told++
			if !r.is("ErrIO") {
				t.Errorf("%s: %v, want ErrIO", op.name, r.answer)
			}
		}
		must(t, child.does(t, order{Do: "next"}))
		must(t, child.does(t, order{Do: "close"}))
		agrees(t, op, r.answer, survey(t, dir))
	}
	if told < 3 {
		t.Errorf("it was told %d times only", told)
	}
}
