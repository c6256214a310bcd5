package iofault

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/localqueue/localqueue/chaos/powercut"
	"github.com/localqueue/localqueue/queue"
)

// marker is in every payload and must be in no error.
const marker = "payload-of-the-user"

func payload(n int) []byte {
	return []byte(marker + strings.Repeat("x", n))
}

// The jobs that every attempt finds, by the ids that they get in a new file.
const (
	leasedA, leasedB, leasedC = 1, 2, 3
	ackedA, ackedB            = 4, 5
	failedA, failedB          = 6, 7
	readyA                    = 8 // and three more
	delayedA                  = 12
)

// Queues beside the default one.
const (
	lapsedQueue = "lapsed" // its job's lease has ended
	pausedQueue = "paused"
)

const dirEnv = "LOCALQUEUE_TEST_DIR"

// populate is the role that fills a new directory with jobs in every state.
func populate() error {
	s, err := queue.Open(os.Getenv(dirEnv), queue.WithDurability(queue.Normal), queue.WithLease(time.Hour))
	if err != nil {
		return err
	}
	ctx, q := context.Background(), s.Default()
	lapsed, err1 := s.Queue(lapsedQueue, queue.WithLease(time.Millisecond))
	paused, err2 := s.Queue(pausedQueue)
	err = errors.Join(err1, err2)
	do := func(step func() error) {
		if err == nil {
			err = step()
		}
	}
	put := func(n int, opts ...queue.PutOption) {
		for range n {
			do(func() error { return second(q.Put(ctx, payload(3000), opts...)) })
		}
	}
	take := func(n int, settle func(*queue.Job) error) {
		do(func() error {
			jobs, err := q.TryGetMany(ctx, n)
			for _, j := range jobs {
				err = errors.Join(err, settle(j))
			}
			return err
		})
	}
	put(3)
	take(3, func(*queue.Job) error { return nil })
	put(2)
	take(2, func(j *queue.Job) error { return j.Ack(ctx) })
	put(1)
	put(1, queue.JobID("dead"))
	take(2, func(j *queue.Job) error { return j.Fail(ctx, errors.New("boom")) })
	put(4)
	put(1, queue.Delay(time.Hour))
	do(func() error { return second(lapsed.Put(ctx, payload(10))) })
	do(func() error { return second(lapsed.TryGet(ctx)) })
	do(func() error { return second(paused.Put(ctx, payload(10))) })
	do(func() error { return paused.Pause(ctx) })
	return errors.Join(err, s.Close())
}

func second[T any](_ T, err error) error { return err }

// bed is the directory that the attempts copy, made once.
var bed = sync.OnceValues(func() (files powercut.Image, err error) {
	dir, err := os.MkdirTemp("", "localqueue-iofault-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd := exec.Command(os.Args[0])
	cmd.Env = childEnv("populate", sound, dirEnv+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	// Closed, it is one file: reading it drops no locks.
	db, err := os.ReadFile(filepath.Join(dir, dbFile))
	return powercut.Image{dbFile: db}, err
})

const dbFile = "localqueue.db"

// copyBed makes a queue with the jobs of populate in a new directory.
func copyBed(t testing.TB) (dir string) {
	t.Helper()
	dir = place(t)
	layBed(t, dir)
	return dir
}

func layBed(t testing.TB, dir string) {
	t.Helper()
	files, err := bed()
	ok(t, err)
	ok(t, files.Write(dir))
}

var (
	reading sync.Mutex
	held    map[int64]string
)

// receipts are those of the leased jobs in every copy of the bed.
func receipts(t testing.TB) map[int64]string {
	t.Helper()
	reading.Lock()
	defer reading.Unlock()
	if held == nil {
		s, err := queue.Open(copyBed(t))
		ok(t, err)
		defer func() { ok(t, s.Close()) }()
		held = map[int64]string{}
		for r, err := range s.Default().All(context.Background(), queue.Leased) {
			ok(t, err)
			held[r.ID] = r.Receipt
		}
	}
	return held
}

// longLease tells a lease that an attempt has extended from those that populate took.
const longLease = 5 * time.Hour

// survey is everything in a directory that an operation can change, except instants and random receipts, as text.
func survey(t testing.TB, dir string) string {
	t.Helper()
	s, err := queue.Open(dir, queue.MustExist(), queue.WithBusyTimeout(patience/2))
	if err != nil {
		t.Fatalf("a healthy process can't open it: %v", err)
	}
	defer func() { ok(t, s.Close()) }()
	ctx := context.Background()
	found, err := s.Check(ctx, false)
	ok(t, err)
	if len(found) > 0 {
		t.Fatalf("Check finds %+v", found)
	}
	var b strings.Builder
	all, err := s.Queues(ctx)
	ok(t, err)
	for _, st := range all {
		fmt.Fprintf(&b, "%s ready %d delayed %d leased %d acked %d failed %d paused %v keep %v\n", st.Queue, st.Ready, st.Delayed, st.Processing, st.Acked, st.Failed, st.Paused, st.KeepAcked != nil)
		q, err := s.Queue(st.Queue)
		ok(t, err)
		for _, state := range []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed} {
			for r, err := range q.All(ctx, state) {
				ok(t, err)
				_, past, err := q.Show(ctx, r.ID)
				ok(t, err)
				id := fmt.Sprint(r.ID)
				if r.JobID == nextKey { // ids may have gaps
					id = "the last"
				}
				fmt.Fprintf(&b, "  %s %s key %q attempt %d/%d delivery %d reason %q error %q payload %d:%08x extended %v", id, r.State, r.JobID, r.Attempts, r.MaxAttempts, r.Delivery,
					r.Reason, r.LastError, len(r.Payload), crc32.ChecksumIEEE(r.Payload), time.Until(r.LeaseUntil) > longLease/2)
				for _, d := range past {
					fmt.Fprintf(&b, " [%d %s %s]", d.Number, d.Outcome, d.Error)
				}
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}
