package queue_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// allThere compares every job of the file with the manifest.
func (f fixture) allThere(t testing.TB, s *queue.Store) {
	t.Helper()
	for _, want := range f.jobs {
		got, story, err := queueOf(t, s, want.Record.Queue).Show(t.Context(), want.Record.ID)
		ok(t, err)
		found := fixtureJob{Record: *got, SHA256: hash(got.Payload), Story: story}
		found.Record.Payload = nil
		same(t, want.note, [...]any{want.Record, want.SHA256, want.Story}, [...]any{found.Record, found.SHA256, found.Story})
	}
	counted := int64(0)
	all, err := s.Queues(t.Context())
	ok(t, err)
	for _, st := range all {
		counted += st.Ready + st.Processing + st.Acked + st.Failed
	}
	same(t, "jobs", int64(len(f.jobs)), counted)
	for _, want := range f.stats {
		got, err := queueOf(t, s, want.Queue).Stats(t.Context())
		ok(t, err)
		got.OldestAge, want.OldestAge = 0, 0
		if f.original { // it counts neither
			got.Delayed, got.Expired = 0, 0
		}
		same(t, "stats", want, got)
	}
}

// migratedOnce looks at goose's own table: each step is there, and once.
func migratedOnce(t testing.TB, dir string) {
	t.Helper()
	steps, err := queue.MigrateStatus(t.Context(), dir)
	ok(t, err)
	want := []string{"0"}
	for _, s := range steps {
		same(t, s.Name+" is applied", true, s.Applied)
		want = append(want, strconv.FormatInt(s.Version, 10))
	}
	same(t, "versions applied", want, column(t, dir, "SELECT version_id FROM goose_db_version ORDER BY id"))
}

// column is what a query of one column finds in the file, as text.
func column(t testing.TB, dir, query string) (values []string) {
	t.Helper()
	db, err := openRaw(dir)
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	rows, err := db.Query(query)
	ok(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var v string
		ok(t, rows.Scan(&v))
		values = append(values, v)
	}
	ok(t, rows.Err())
	return values
}

// then is the tests' time, whenever they run: what ended early in the fixtures has ended, and what holds for long still does.
func then() time.Time { return time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC) }

func eachFixture(t *testing.T, run func(t *testing.T, f fixture)) {
	t.Helper()
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) { run(t, f) })
	}
}

func TestEveryJobOfAnOldFileIsFoundAsItWas(t *testing.T) {
	eachFixture(t, func(t *testing.T, f fixture) {
		dir := f.unpack(t)
		s := openStore(t, dir, queue.WithClock(then))
		f.allThere(t, s)
		healthy(t, s)
		migratedOnce(t, dir)
		f.othersAsTheyWere(t, dir)
	})
}

// othersAsTheyWere compares the tables of the original's event bus.
func (f fixture) othersAsTheyWere(t testing.TB, dir string) {
	t.Helper()
	for name, rows := range f.tables {
		columns := column(t, dir, "SELECT name FROM pragma_table_info('"+name+"') ORDER BY cid")
		var want []string
		for _, row := range rows {
			text, err := json.Marshal(row)
			ok(t, err)
			want = append(want, string(text))
		}
		same(t, name, want, column(t, dir, "SELECT json_array("+strings.Join(columns, ", ")+") FROM "+name+" ORDER BY "+columns[0]+", "+columns[1]))
	}
}

// The event bus of 1.4 points at jobs from tables of its own, which stay as they are also when its jobs are purged.
func TestTheEventBusOfTheOriginalKeepsItsTables(t *testing.T) {
	eachOriginal(t, func(t *testing.T, f fixture) {
		dir := f.unpack(t)
		s := openStore(t, dir)
		purged := 0
		for _, name := range f.queues() {
			if strings.HasPrefix(name, "__bus__:") {
				n, err := queueOf(t, s, name).Purge(t.Context(), queue.PurgeOptions{Failed: true})
				ok(t, err)
				purged += n
			}
		}
		same(t, "jobs of the bus are purged where there is one", len(f.tables) > 0, purged > 0)
		f.othersAsTheyWere(t, dir)
		healthy(t, s)
	})
}

func TestFourProcessesOpenAnOldFileAtOnce(t *testing.T) {
	eachFixture(t, func(t *testing.T, f fixture) {
		dir := f.unpack(t)
		visitors := startProcesses(t, 4)
		for _, p := range visitors {
			p.tell("visit", dir)
		}
		for _, p := range visitors {
			same(t, "a visit", "ok", p.hears())
		}
		migratedOnce(t, dir)
		s := openStore(t, dir, queue.WithClock(then))
		f.allThere(t, s)
		healthy(t, s)
	})
}

func TestAnOldFileIsWorkedOffToItsLastJob(t *testing.T) {
	eachFixture(t, func(t *testing.T, f fixture) {
		ctx := t.Context()
		clock := &fakeClock{}
		clock.set(then())
		s := openStore(t, f.unpack(t), queue.WithClock(clock.now))
		f.refusesKeysThatAreHeld(t, s)
		f.reclaims(t, s)
		f.settlesByOldReceipts(t, s)
		clock.set(then().Add(100 * 365 * 24 * time.Hour))
		for _, name := range f.queues() {
			q := queueOf(t, s, name)
			ok(t, q.Resume(ctx))
			for {
				j, err := q.TryGet(ctx)
				if errors.Is(err, queue.ErrEmpty) {
					break
				}
				ok(t, err)
				same(t, "bytes", f.job(t, j.ID).SHA256, hash(j.Payload))
				ok(t, j.Ack(ctx))
			}
			st, err := q.Stats(ctx)
			ok(t, err)
			same(t, name+" is worked off", [...]int64{0, 0}, [...]int64{st.Ready, st.Processing})
			goesOn(t, q)
		}
		healthy(t, s)
	})
}

// goesOn takes a new job through its life.
func goesOn(t testing.TB, q *queue.Queue) {
	t.Helper()
	ctx := t.Context()
	put, err := q.Put(ctx, []byte("new"), queue.JobID("new"), queue.MaxRetries(1))
	ok(t, err)
	for attempt := 1; attempt <= 2; attempt++ {
		j, err := q.TryGet(ctx)
		ok(t, err)
		same(t, "a new job", []any{put.ID, attempt, "new"}, []any{j.ID, j.Attempt, string(j.Payload)})
		ok(t, j.Nack(ctx, errors.New("again")))
	}
	ok(t, q.RetryFailed(ctx, put.ID))
	j, err := q.TryGet(ctx)
	ok(t, err)
	ok(t, j.Ack(ctx))
}

func (f fixture) job(t testing.TB, id int64) fixtureJob {
	t.Helper()
	for _, j := range f.jobs {
		if j.Record.ID == id {
			return j
		}
	}
	t.Fatalf("no job %d in %s", id, f.name)
	return fixtureJob{}
}

func (f fixture) refusesKeysThatAreHeld(t testing.TB, s *queue.Store) {
	t.Helper()
	for _, j := range f.jobs {
		if r := j.Record; r.JobID != "" && !r.Pending {
			res, err := queueOf(t, s, r.Queue).Put(t.Context(), nil, queue.JobID(r.JobID))
			ok(t, err)
			same(t, "a put with a key that is held", queue.PutResult{ID: r.ID, Duplicate: true}, res)
		}
	}
}

// reclaims ends the leases that have passed, and no other.
func (f fixture) reclaims(t testing.TB, s *queue.Store) {
	t.Helper()
	want := map[string]queue.Reclaimed{}
	for _, j := range f.jobs {
		n := want[j.Record.Queue]
		switch {
		case !j.expired:
		case j.Record.Attempts < j.Record.MaxAttempts:
			n.Returned++
		default:
			n.Failed++
		}
		want[j.Record.Queue] = n
	}
	for name, n := range want {
		got, err := queueOf(t, s, name).ReclaimExpired(t.Context())
		ok(t, err)
		same(t, "leases of "+name+" that have ended", n, got)
	}
	same(t, "the fixture has leases that have ended", queue.Reclaimed{Returned: 3, Failed: 1}, want["expired"])
	for _, j := range f.jobs {
		if j.expired {
			r := mustShow(t, queueOf(t, s, "expired"), j.Record.ID)
			same(t, "an attempt whose lease ended counts", []any{j.Record.Attempts, ""}, []any{r.Attempts, r.Receipt})
		}
	}
}

// settlesByOldReceipts acks with each receipt in the file: those whose lease has ended are refused.
func (f fixture) settlesByOldReceipts(t testing.TB, s *queue.Store) {
	t.Helper()
	for _, j := range f.jobs {
		if j.Record.State == queue.Leased {
			q := queueOf(t, s, j.Record.Queue)
			matches(t, q.Ack(t.Context(), j.Record.ID, "1"+j.Record.Receipt), queue.ErrLeaseLost)
			err := q.Ack(t.Context(), j.Record.ID, j.Record.Receipt)
			if same(t, "an ended lease is lost", j.expired, errors.Is(err, queue.ErrLeaseLost)); !j.expired {
				ok(t, err)
			}
		}
	}
}
