package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/localqueue/localqueue/queue"
)

// patience bounds every wait of the suite for something that must come.
const patience = 5 * time.Second

// fakeClock is a clock that only a test moves.
type fakeClock struct{ ns atomic.Int64 }

func (c *fakeClock) now() time.Time    { return time.Unix(0, c.ns.Load()).UTC() }
func (c *fakeClock) set(now time.Time) { c.ns.Store(now.UnixNano()) }

// peer is one Store on the world's directory, wherever it is open.
type peer interface {
	call(ctx context.Context, r wireRequest) wireResponse
	setClock(now time.Time) error
	close() error
}

// localPeer is a Store in this process.
type localPeer struct {
	seat  *seat
	clock *fakeClock
}

func openLocal(dir string, o storeOpts, now time.Time) (*localPeer, error) {
	clock := &fakeClock{}
	clock.set(now)
	s, err := openSeat(dir, o, clock.now)
	return &localPeer{seat: s, clock: clock}, err
}

func (p *localPeer) call(ctx context.Context, r wireRequest) wireResponse { return p.seat.run(ctx, r) }
func (p *localPeer) setClock(now time.Time) error                         { p.clock.set(now); return nil }
func (p *localPeer) close() error                                         { return p.seat.store.Close() }

// world is one directory with the Stores that are open on it. Each operation goes to the next of them, unless a lane
// says which.
type world struct {
	lane
	t     *testing.T
	dir   string
	shape shape
	opts  storeOpts
	clock *fakeClock
	peers []peer
	turns atomic.Int64
}

const minute = time.Minute

// start is the time of a world's clock at the beginning.
var start = time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, s shape, o storeOpts) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), shape: s, clock: &fakeClock{}}
	w.lane = lane{w: w, queue: "jobs", at: anyPeer}
	w.clock.set(start)
	s.prepare(t, w.dir)
	t.Cleanup(w.closeAll)
	w.reopen(o)
	return w
}

// reopen closes the Stores and opens them anew with other options.
func (w *world) reopen(o storeOpts) {
	w.t.Helper()
	w.closeAll()
	w.opts = o
	peers, err := w.shape.open(w.dir, o, w.clock.now())
	w.peers = peers
	if err != nil {
		w.t.Fatalf("open the %s: %v", w.shape.name, err)
	}
}

func (w *world) closeAll() {
	for _, p := range w.peers {
		if err := p.close(); err != nil {
			w.t.Errorf("close: %v", err)
		}
	}
	w.peers = nil
}

// advance moves the clock of every Store.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	now := w.clock.now().Add(d)
	w.clock.set(now)
	for _, p := range w.peers {
		if err := p.setClock(now); err != nil {
			w.t.Fatalf("set the clock: %v", err)
		}
	}
}

func (w *world) now() time.Time { return w.clock.now() }

// on is a lane for another queue.
func (w *world) on(name string) *lane { return &lane{w: w, queue: bin(name), at: anyPeer} }

// verify is what must hold after every case: nothing found in the file, and every Store counting what the rows say.
func (w *world) verify() {
	w.t.Helper()
	found, err := w.check(false)
	w.ok(err)
	w.equal("findings of Check", []queue.Finding(nil), found)
	want := w.recount()
	for i := range w.peers {
		got, err := w.peer(i).queues()
		w.ok(err)
		for j := range got {
			got[j].OldestAge, got[j].Paused, got[j].KeepAcked = 0, false, nil
		}
		w.equal("stats", want, got)
	}
}

// recount counts the rows of the file by another way than the Store's.
func (w *world) recount() (all []queue.Stats) {
	w.t.Helper()
	now := w.now()
	if w.opts.RealClock {
		now = time.Now()
	}
	db, err := openRaw(w.dir)
	w.ok(err)
	defer func() { w.ok(db.Close()) }()
	rows, err := db.Query(`SELECT q.name, count(iif(m.status = 0, 1, NULL)), count(iif(m.status = 0 AND m.delayed AND m.available_at > ?1, 1, NULL)), count(iif(m.status = 1, 1, NULL)),
		count(iif(m.status = 1 AND COALESCE(m.lease_until, 0) <= ?1, 1, NULL)), count(iif(m.status = 2, 1, NULL)), count(iif(m.status = 3, 1, NULL))
		FROM queues q LEFT JOIN messages m ON m.queue = q.name GROUP BY q.name ORDER BY q.name`, now.UnixMilli())
	w.ok(err)
	defer func() { w.ok(rows.Close()) }()
	for rows.Next() {
		var s queue.Stats
		w.ok(rows.Scan(&s.Queue, &s.Ready, &s.Delayed, &s.Processing, &s.Expired, &s.Acked, &s.Failed))
		all = append(all, s)
	}
	w.ok(rows.Err())
	return withoutAstray(all)
}

// raw runs statements on the file as another program would.
func (w *world) raw(statement string, args ...any) {
	w.t.Helper()
	db, err := openRaw(w.dir)
	w.ok(err)
	defer func() { w.ok(db.Close()) }()
	if _, err := db.Exec(statement, args...); err != nil {
		w.t.Fatalf("%v in %s", err, statement)
	}
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("unexpected error: %v", err)
	}
}

// is fails the test unless err matches every one of the wanted.
func (w *world) is(err error, wanted ...error) {
	w.t.Helper()
	for _, want := range wanted {
		if !errors.Is(err, want) {
			w.t.Fatalf("the error is %v, want one that matches %q", err, want)
		}
	}
}

// says fails the test unless err's text has every one of the parts.
func (w *world) says(err error, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			w.t.Fatalf("the error is %v, want %q in it", err, part)
		}
	}
}

func (w *world) lost(err error, cause queue.LossCause) {
	w.t.Helper()
	w.is(err, queue.ErrLeaseLost)
	var lost *queue.LeaseLostError
	if !errors.As(err, &lost) {
		w.t.Fatalf("%v is no LeaseLostError", err)
	}
	w.equal("cause of the lost lease", cause, lost.Cause)
}

func (w *world) equal(what string, want, got any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(queue.Job{})); diff != "" {
		w.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// number reads one number from the file, as another program would.
func (w *world) number(query string, args ...any) (n int) {
	w.t.Helper()
	db, err := openRaw(w.dir)
	w.ok(err)
	defer func() { w.ok(db.Close()) }()
	w.ok(db.QueryRow(query, args...).Scan(&n))
	return n
}
