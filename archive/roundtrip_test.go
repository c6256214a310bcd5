package archive_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/queue"
)

// payloadsOfAllKinds are bytes that a text of JSON could change.
var payloadsOfAllKinds = []string{
	"", " ", "\n", "\x00", `"`, `\u0000`, "NaN", "Infinity", "12345678901234567890.10", `{"a": 1970670598291982290 }`, "<script>&amp;</script>",
	"ü\u2028\U0001F600", "\xff\xfe", "\xed\xa0\x80", "\uFFFD", "\x1b[31m", strings.Repeat("\xc3", 3000), strings.Repeat("long text\r\n", 300),
}

// fullStore has a job in every state, with all that a job can have.
func fullStore(t *testing.T, clock func() time.Time) *queue.Store {
	t.Helper()
	s := open(t, queue.WithClock(clock))
	ctx, q := t.Context(), s.Default()
	take := func() *queue.Job {
		t.Helper()
		job, err := q.TryGet(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, q, "acked", queue.JobID("k"), queue.UniqueWhilePending())
	ok(take().Ack(ctx))
	put(t, q, "failed", queue.JobID("k"), queue.UniqueWhilePending(), queue.MaxRetries(24), queue.Header("a", "\x01\xc3\xbc"), queue.Header("b", ""))
	for range 24 {
		ok(take().Nack(ctx, errors.New("tab\there")))
	}
	ok(take().Fail(ctx, errors.New("\xffno")))
	put(t, q, "cancelled", queue.JobID("for ever"))
	ok(q.Cancel(ctx, 3))
	put(t, q, "leased")
	take()
	put(t, q, "delayed", queue.Delay(time.Hour), queue.Priority(-3))
	put(t, q, "nacked", queue.JobID("k"), queue.UniqueWhilePending(), queue.Priority(7))
	ok(take().Nack(ctx, errors.New("later"), queue.Delay(time.Minute)))
	for _, p := range payloadsOfAllKinds {
		put(t, q, p)
	}
	put(t, q, strings.Repeat("0123456789", 1<<20))
	put(t, q, "\xff"+strings.Repeat("x", 1<<20))
	other, err := s.Queue("queue of its own ü")
	ok(err)
	put(t, other, "paused", queue.JobID("k"))
	ok(other.Pause(ctx))
	ok(other.KeepAcked(ctx, 90*time.Second))
	return s
}

func clockAt(at time.Time) func() time.Time { return func() time.Time { return at } }

var noon = time.Date(2031, 5, 17, 12, 0, 0, int(123*time.Millisecond), time.UTC)

func TestAnExportImportedAndExportedIsTheSame(t *testing.T) {
	from, to := fullStore(t, clockAt(noon)), open(t, queue.WithClock(clockAt(noon)))
	text := export(t, from, "")
	res := mustImport(t, to, text, archive.ImportOptions{})
	n := int(strings.Count(text, "\n"))
	if want := (archive.ImportResult{Name: res.Name, Lines: int64(n), Stored: n - 2, KeptIDs: true}); res != want {
		t.Errorf("result %+v, want %+v", res, want)
	}
	if diff := cmp.Diff(strings.Split(jobLines(t, text), "\n"), strings.Split(jobLines(t, export(t, to, "")), "\n")); diff != "" {
		t.Errorf("exports (-first +second): %d bytes of differences, %.2000s", len(diff), diff)
	}
	want, err := from.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := to.Queues(t.Context()); err != nil || !cmp.Equal(want, got) {
		t.Errorf("stats (%v):\n%s", err, cmp.Diff(want, got))
	}
	sound(t, to)

	again := mustImport(t, to, text, archive.ImportOptions{})
	if want := (archive.ImportResult{Name: res.Name, Lines: int64(n), Earlier: int64(n), KeptIDs: true}); again != want {
		t.Errorf("a repeat: %+v, want %+v", again, want)
	}
	if diff := cmp.Diff(payloads(t, from), payloads(t, to)); diff != "" {
		t.Error("a repeat has changed something")
	}
}

func TestAnExportOfOneQueueHasItsJobsAndItsSettingsOnly(t *testing.T) {
	from, to := fullStore(t, clockAt(noon)), open(t, queue.WithClock(clockAt(noon)))
	const name = "queue of its own ü"
	if res := mustImport(t, to, export(t, from, name), archive.ImportOptions{}); res.Stored != 1 || !res.KeptIDs {
		t.Errorf("%+v", res)
	}
	all, err := to.Queues(t.Context())
	if err != nil || len(all) != 1 || all[0].Queue != name || !all[0].Paused || all[0].Ready != 1 {
		t.Errorf("queues %+v, %v", all, err)
	}
}

func TestAnExportOfAQueueThatIsntThereIsRefused(t *testing.T) {
	s := fullStore(t, clockAt(noon))
	_, err := archive.Export(t.Context(), s, &strings.Builder{}, archive.ExportOptions{Queue: "typo"})
	matches(t, err, archive.ErrNoSuchQueue)
	_, err = archive.Export(t.Context(), s, &strings.Builder{}, archive.ExportOptions{Queue: "\x00"})
	matches(t, err, queue.ErrInvalid)
}

func TestAnExportOfNothingCanBeImported(t *testing.T) {
	from, to := open(t), open(t)
	if err := from.Default().Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := export(t, from, "")
	if strings.Count(text, "\n") != 2 {
		t.Errorf("more than a header and an end: %q", text)
	}
	if res := mustImport(t, to, text, archive.ImportOptions{}); res.Stored != 0 || res.Lines != 2 {
		t.Errorf("%+v", res)
	}
	if st, err := to.Default().Stats(t.Context()); err != nil || !st.Paused {
		t.Errorf("the setting has not come along: %+v, %v", st, err)
	}
}

// Other programs read the format: its fields are part of it.
func TestALineHasTheFieldsOfTheFormat(t *testing.T) {
	s := open(t, queue.WithClock(clockAt(noon)))
	put(t, s.Default(), "a <b>", queue.JobID("k"), queue.Header("h", "v"))
	lines := strings.Split(export(t, s, ""), "\n")
	want := `{"id":1,"queue":"default","state":"ready","reason":null,"job_id":"k","unique_while_pending":false,"priority":0,"attempts":0,"max_attempts":4,` +
		`"delivery":0,"available_at":"2031-05-17T12:00:00.123Z","lease_until":null,"receipt":null,"claimed_at":null,"claimed_by":null,` +
		`"created_at":"2031-05-17T12:00:00.123Z","updated_at":"2031-05-17T12:00:00.123Z","last_error":null,"headers":{"h":"v"},"text":"a <b>","history":[]}`
	if diff := cmp.Diff(want, lines[1]); diff != "" {
		t.Errorf("a job (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(`{"localqueue_export_end":1,"jobs":1}`, lines[2]); diff != "" {
		t.Errorf("the end (-want +got):\n%s", diff)
	}
	var head map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &head); err != nil {
		t.Fatal(err)
	}
	name, _ := head["export"].(string)
	delete(head, "export")
	source, err := s.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantHead := map[string]any{"localqueue_export": 1.0, "source": source, "created_at": "2031-05-17T12:00:00.123Z", "queue": nil, "first_id": 1.0, "last_id": 1.0,
		"queues": []any{map[string]any{"queue": "default", "paused": false, "keep_acked_ms": nil}}}
	if diff := cmp.Diff(wantHead, head); diff != "" || len(name) < 20 {
		t.Errorf("the header, name %q (-want +got):\n%s", name, diff)
	}
}

func TestAnExportTellsItsProgress(t *testing.T) {
	s := open(t)
	for range 250 {
		put(t, s.Default(), "x")
	}
	var told []int64
	if _, err := archive.Export(t.Context(), s, &strings.Builder{}, archive.ExportOptions{Progress: func(n int64) { told = append(told, n) }}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{100, 200, 250}, told); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

type fullDisk struct{}

var errFull = errors.New("no space")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestAnExportTellsThatItCantBeWritten(t *testing.T) {
	_, err := archive.Export(t.Context(), open(t), fullDisk{}, archive.ExportOptions{})
	matches(t, err, errFull)
}
