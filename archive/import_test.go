package archive_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/queue"
)

// numbers are the texts of 1 to n.
func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(i+1))
	}
	return all
}

// numbered is a Store with n jobs without keys, that say their numbers.
func numbered(t *testing.T, n int) *queue.Store {
	t.Helper()
	s := open(t)
	var batch []queue.NewJob
	for _, p := range numbers(n) {
		batch = append(batch, queue.NewJob{Payload: []byte(p)})
	}
	if _, err := s.Default().PutMany(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestABrokenLineStopsAnImportAndARepeatDoublesNothing(t *testing.T) {
	text := export(t, numbered(t, 600), "")
	lines := strings.SplitAfter(text, "\n")
	for _, at := range []int{2, 3, 300, 601, 602} {
		t.Run(fmt.Sprint("line ", at), func(t *testing.T) {
			to := open(t)
			broken := slices.Clone(lines)
			broken[at-1] = broken[at-1][:len(broken[at-1])/2] + "\n"
			for range 2 {
				res, err := importText(t, to, strings.Join(broken, ""), archive.ImportOptions{})
				matches(t, err, archive.ErrLine)
				var line *archive.LineError
				if !errors.As(err, &line) || line.Line != int64(at) {
					t.Fatalf("%v, want line %d", err, at)
				}
				if at > 2 && res.Lines != int64(at-1) {
					t.Errorf("%+v: want what is before the line", res)
				}
				if diff := cmp.Diff(numbers(at-2), payloads(t, to)); diff != "" {
					t.Fatalf("jobs before the broken line (-want +got):\n%s", diff)
				}
			}
			put(t, to.Default(), "in between")
			res := mustImport(t, to, text, archive.ImportOptions{})
			wantKept := at > 2 // else the job in between came first
			if res.Stored != 602-at || res.KeptIDs != wantKept {
				t.Errorf("after it was mended: %+v", res)
			}
			want := append(numbers(600), "in between")
			if !wantKept {
				want = append([]string{"in between"}, numbers(600)...)
			}
			if diff := cmp.Diff(want, payloads(t, to)); diff != "" {
				t.Errorf("all jobs (-want +got):\n%s", diff)
			}
			sound(t, to)
		})
	}
}

func TestAnExportThatIsCutOffIsNoticedWhereverItIs(t *testing.T) {
	text := export(t, numbered(t, 3), "")
	to := open(t)
	var ends []int // of the jobs' lines
	for i := range text {
		if text[i] == '\n' {
			ends = append(ends, i)
		}
	}
	for cut := ends[0]; cut < len(text)-1; cut++ { // without its very last byte it is whole
		_, err := importText(t, to, text[:cut], archive.ImportOptions{})
		if !errors.Is(err, archive.ErrTruncated) && !errors.Is(err, archive.ErrLine) {
			t.Fatalf("cut at %d of %d: %v", cut, len(text), err)
		}
		whole := 0
		for _, end := range ends[1:4] {
			if end <= cut {
				whole++
			}
		}
		if diff := cmp.Diff(numbers(whole), payloads(t, to)); diff != "" {
			t.Fatalf("jobs, cut at %d (-want +got):\n%s", cut, diff)
		}
	}
	if res := mustImport(t, to, text[:len(text)-1], archive.ImportOptions{}); !res.KeptIDs {
		t.Errorf("%+v", res)
	}
	if diff := cmp.Diff(numbers(3), payloads(t, to)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func TestAMissingJobIsNoticed(t *testing.T) {
	lines := strings.SplitAfter(export(t, numbered(t, 3), ""), "\n")
	_, err := importText(t, open(t), lines[0]+lines[1]+lines[3]+lines[4], archive.ImportOptions{})
	matches(t, err, archive.ErrTruncated, archive.ErrLine)
	_, err = importText(t, open(t), strings.Join(lines, "")+lines[1], archive.ImportOptions{})
	matches(t, err, archive.ErrLine)
	_, err = importText(t, open(t), lines[0]+lines[2]+lines[1]+lines[3]+lines[4], archive.ImportOptions{})
	matches(t, err, archive.ErrLine, queue.ErrInvalid)
}

func TestOtherLinesUnderAKnownNameAreRefused(t *testing.T) {
	to := open(t)
	text := `{"text":"1"}` + "\n" + `{"text":"2"}` + "\n"
	mustImport(t, to, text, archive.ImportOptions{Name: "lines"})
	for name, other := range map[string]string{
		"a changed line": strings.Replace(text, "1", "one", 1) + `{"text":"3"}`,
		"a line less":    `{"text":"1"}`,
		"nothing":        "",
	} {
		_, err := importText(t, to, other, archive.ImportOptions{Name: "lines"})
		if !errors.Is(err, archive.ErrOtherInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if res := mustImport(t, to, text+`{"text":"3"}`, archive.ImportOptions{Name: "lines"}); res.Stored != 1 || res.Earlier != 2 {
		t.Errorf("the same lines and one more: %+v", res)
	}
	if res := mustImport(t, to, text, archive.ImportOptions{Name: "another"}); res.Stored != 2 {
		t.Errorf("under another name: %+v", res)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "1", "2"}, payloads(t, to)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func TestLinesFromElsewhereNeedOnlyAPayload(t *testing.T) {
	to := open(t, queue.WithMaxRetries(6), queue.WithClock(clockAt(noon)))
	lines := []string{
		`{"payload": {"n": 1.0, "big":12345678901234567890} }`,
		`{"text":"\ud83d\ude00 text"}`,
		``,
		`{"base64":"/wA="}`,
		`{"payload":null,"id":99,"receipt":null,"unknown":[1]}`,
		`{"text":"later","queue":"other","available_at":"2031-05-17T14:00:00+01:00","job_id":"k","priority":-4,"max_attempts":1,"headers":{"a":"b"}}`,
		`{"payload":{"as":"list prints it","n":[1]},"text":"{\"as\": \"list prints it\", \"n\": [1]}"}`,
	}
	res := mustImport(t, to, strings.Join(lines, "\r\n"), archive.ImportOptions{Name: "x", Queue: "mine"})
	if res.Stored != 6 || res.KeptIDs || res.Lines != 7 {
		t.Errorf("%+v", res)
	}
	want := []string{`{"n": 1.0, "big":12345678901234567890}`, "\U0001F600 text", "\xff\x00", "null", "later", `{"as": "list prints it", "n": [1]}`}
	if diff := cmp.Diff(want, payloads(t, to)); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
	for job, err := range to.Export(t.Context(), queue.ExportOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		r, want := job.Record, queue.Record{ID: job.ID, Queue: "mine", State: queue.Ready, MaxAttempts: 7, CreatedAt: noon, UpdatedAt: noon, AvailableAt: noon, Payload: job.Payload}
		if string(r.Payload) == "later" {
			want.Queue, want.State, want.JobID, want.Priority, want.MaxAttempts = "other", queue.Delayed, "k", -4, 1
			want.AvailableAt, want.Headers = noon.Add(3600e9).Truncate(1e9), map[string]string{"a": "b"}
		}
		if len(r.Headers) == 0 {
			r.Headers = nil
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("%q (-want +got):\n%s", r.Payload, diff)
		}
	}
	sound(t, to)
}

func TestABadInputIsRefusedWithItsLine(t *testing.T) {
	header := `{"localqueue_export":1,"export":"x","first_id":1,"last_id":9,"queues":[]}` + "\n"
	for _, tt := range []struct {
		name, text string
		line       int64
		says       string
	}{
		{"no object", `["text"]`, 1, "not a JSON object"},
		{"nothing in it", `{}`, 1, "no payload"},
		{"two payloads", `{"text":"a","base64":""}`, 1, "both"},
		{"two objects", `{"text":"a"}{"text":"b"}`, 1, "not JSON"},
		{"a wrong type", `{"text":"a","priority":"high"}`, 1, "priority"},
		{"a number out of range", `{"text":"a","priority":40000}`, 1, "priority"},
		{"bad base64", `{"base64":"a b"}`, 1, "base64"},
		{"base64 with bits to spare", `{"base64":"/w1="}`, 1, "base64"},
		{"bytes in a text", "{\"text\":\"\xff\"}", 1, "UTF-8"},
		{"half a surrogate pair", `{"text":"\ud83d"}`, 1, "surrogate"},
		{"a time in another form", `{"text":"a","created_at":"yesterday"}`, 1, "RFC 3339"},
		{"a time as a number", `{"text":"a","created_at":17}`, 1, "RFC 3339"},
		{"two values", `{"payload":{"a":1},"text":"caption"}`, 1, "another value"},
		{"two values, one in base64", `{"payload":2,"base64":"MQ=="}`, 1, "another value"},
		{"a value and a longer text", `{"payload":1,"text":"1 2"}`, 1, "another value"},
		{"a payload of null beside a text", `{"payload":null,"text":"a"}`, 1, "another value"},
		{"a known name in another case", `{"text":"a","State":"failed"}`, 1, `"State" is unknown: it is written "state"`},
		{"a known name in another case, escaped", `{"text":"a","\u0051ueue":"failed"}`, 1, `"queue"`},
		{"a known name in another case in the history", `{"text":"a","history":[{},{"Delivery":1}]}`, 1, `"delivery"`},
		{"a name twice", `{"text":"a","text":"b"}`, 1, `"text" is there twice`},
		{"a name twice, escaped", `{"text":"a", "x" : [{"}":1}] , "\u0074ext" :"b"}`, 1, "twice"},
		{"an unknown name twice", `{"text":"a","x":1,"x":1}`, 1, "twice"},
		{"a header twice", `{"text":"a","headers":{"h":"1","h":"2"}}`, 1, "twice"},
		{"a name in the history twice", `{"text":"a","history":[{"delivery":1,"delivery":2}]}`, 1, "twice"},
		{"a header's name twice", strings.Replace(header, `"export":"x"`, `"export":"x","export":"y"`, 1), 1, "twice"},
		{"a queue's name in another case in the header", strings.Replace(header, `[]`, `[{"Queue":"q"}]`, 1), 1, `"queue"`},
		{"no attempts at all", `{"text":"a","max_attempts":0}`, 1, "max_attempts is 0"},
		{"less than none", `{"text":"a","max_attempts":-1}`, 1, "max_attempts is -1"},
		{"more than can be", `{"text":"a","max_attempts":1073741826}`, 1, "max_attempts is 1073741826"},
		{"an empty key", `{"text":"a","job_id":""}`, 1, "job_id"},
		{"a queue's name", `{"text":"a"}` + "\n" + `{"text":"a","queue":"\u0007"}`, 2, "control character"},
		{"an impossible state", `{"text":"a","state":"leased"}`, 1, "leased without an end"},
		{"a newer version", strings.Replace(header, ":1", ":2", 1), 1, "version"},
		{"an id out of the header's range", header + `{"text":"a","id":10}`, 2, "id 10"},
		{"a header without a name", `{"localqueue_export":1}`, 1, ""},
		{"a header with impossible ids", strings.Replace(header, `"last_id":9`, `"last_id":9007199254740992`, 1), 1, "ids"},
		{"a header with impossible settings", strings.Replace(header, `[]`, `[{"queue":"q","keep_acked_ms":9223372036854775807}]`, 1), 1, "keeps acked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := open(t)
			opts := archive.ImportOptions{Name: "x"}
			if strings.Contains(tt.text, "localqueue_export") {
				opts.Name = ""
			}
			_, err := importText(t, to, tt.text, opts)
			if tt.name == "a header without a name" {
				matches(t, err, archive.ErrUnnamed)
				return
			}
			var line *archive.LineError
			if !errors.As(err, &line) || line.Line != tt.line || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want line %d and %q", err, tt.line, tt.says)
			}
			if got := len(payloads(t, to)); got != int(tt.line)-1 && tt.name != "an id out of the header's range" {
				t.Errorf("%d jobs", got)
			}
		})
	}
}

func TestNamesOutsideTheFormatAreNobodysBusiness(t *testing.T) {
	for _, text := range []string{
		`{"text":"a","x":{"State":1,"state":1,"state":2},"y":[{"Text":1,"Text":2}]}`,
		`{"text":"a","headers":{"Queue":"1","queue":"2"}}`,
		`{"payload":{"Text":1,"a":1,"a":"]}\\\"," }}`,
		`{"payload":[{"a":1,"a":2}]}`,
		"{\t\"text\" :\"a\" , \"history\": [ ] , \"headers\" : { } }",
		"\ufeff" + `{"text":"an editor's mark before it"}`,
	} {
		if res, err := importText(t, open(t), text, archive.ImportOptions{Name: "x"}); err != nil || res.Stored != 1 {
			t.Errorf("%s: %+v, %v", text, res, err)
		}
	}
}

func TestAPayloadBesideItsTextMayBeSpelledInAnotherWay(t *testing.T) {
	for text, want := range map[string]string{
		`{"payload":{"b":1,"a":"\u00fc<"},"text":"{\"a\": \"\u00fc\\u003c\", \"b\":1 }"}`: `{"a": "ü\u003c", "b":1 }`,
		`{"payload":"\ud83d","text":"\"\\ud83d\""}`:                                       `"\ud83d"`,
		`{"payload":1,"base64":"MQ=="}`:                                                   `1`,
	} {
		to := open(t)
		mustImport(t, to, text, archive.ImportOptions{Name: "x"})
		if got := payloads(t, to); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestAnExportDoesntComeIntoItsOwnFileUnlessItIsNamed(t *testing.T) {
	s := numbered(t, 2)
	text := export(t, s, "")
	_, err := importText(t, s, text, archive.ImportOptions{})
	matches(t, err, archive.ErrSameSource)
	if diff := cmp.Diff(numbers(2), payloads(t, s)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if res := mustImport(t, s, text, archive.ImportOptions{Name: "copies"}); res.Stored != 2 || res.KeptIDs {
		t.Errorf("%+v", res)
	}
}

func TestARepeatUnderAnotherQueueIsRefused(t *testing.T) {
	to := open(t)
	text := `{"text":"1"}` + "\n" + `{"text":"2"}`
	mustImport(t, to, text, archive.ImportOptions{Name: "lines", Queue: "mail"})
	for _, q := range []string{"", "post"} {
		_, err := importText(t, to, text+"\n"+`{"text":"3"}`, archive.ImportOptions{Name: "lines", Queue: q})
		matches(t, err, queue.ErrImportQueue)
	}
	_, err := importText(t, to, export(t, numbered(t, 1), ""), archive.ImportOptions{Queue: "\x00"})
	if matches(t, err, queue.ErrInvalid); errors.Is(err, archive.ErrLine) {
		t.Errorf("the caller's queue is called a fault of the input: %v", err)
	}
	if diff := cmp.Diff([]string{"1", "2"}, payloads(t, to)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

// Jobs that others put meanwhile take the ids that the import was to keep.
func TestAnImportIntoALiveQueueSucceeds(t *testing.T) {
	to := open(t)
	text := export(t, numbered(t, 3), "")
	at := strings.Index(text, `{"id":1`) // the header is taken before the rest is read
	meanwhile := reading(func() { put(t, to.Default(), "put meanwhile") })
	res, err := archive.Import(t.Context(), to, io.MultiReader(strings.NewReader(text[:at]), meanwhile, strings.NewReader(text[at:])), archive.ImportOptions{})
	if err != nil || res.Stored != 3 || res.KeptIDs {
		t.Errorf("%+v, %v", res, err)
	}
	if diff := cmp.Diff(append([]string{"put meanwhile"}, numbers(3)...), payloads(t, to)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	sound(t, to)
}

// reading does something when the reader gets to it.
type reading func()

func (r reading) Read([]byte) (int, error) {
	r()
	return 0, io.EOF
}

func TestHalfASurrogatePairIsFoundAndOnlyThat(t *testing.T) {
	for text, broken := range map[string]bool{
		`{"text":"\uD83D\uDE00"}`: false, `{"text":"\\ud83d"}`: false, `{"text":"\\\ud83d"}`: true, `{"text":"\ud83dx"}`: true, `{"text":"\ude00\ud83d"}`: true,
		`{"text":"\ud83d\ud83d\ude00"}`: true, `{"text":"a","job_id":"\udfff"}`: true, `{"text":"\u00e4\n"}`: false, `{"payload":"\ud83d"}`: false,
		`{"payload":"\ud83d","job_id":"\ud83d"}`: true,
	} {
		_, err := importText(t, open(t), text, archive.ImportOptions{Name: "x"})
		if (err != nil) != broken {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLinesFromElsewhereNeedAName(t *testing.T) {
	to := open(t)
	for _, text := range []string{"", "\n", `{"text":"a"}`, "garbage"} {
		_, err := importText(t, to, text, archive.ImportOptions{})
		if !errors.Is(err, archive.ErrUnnamed) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got := payloads(t, to); got != nil {
		t.Errorf("jobs %q", got)
	}
}

// endless is a line that never ends.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += int64(len(p))
	return len(p), nil
}

func TestALineWithoutEndIsRefusedSoonEnough(t *testing.T) {
	to := open(t, queue.WithMaxPayload(1000))
	src := &endless{}
	_, err := archive.Import(t.Context(), to, io.MultiReader(strings.NewReader("{\"text\":\"a\"}\n"), src), archive.ImportOptions{Name: "x"})
	matches(t, err, archive.ErrLine, queue.ErrPayloadTooLarge)
	if src.read > 5<<20 {
		t.Errorf("%d bytes were read", src.read)
	}
	if diff := cmp.Diff([]string{"a"}, payloads(t, to)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func base64Line(bytes int) string {
	return `{"base64":"` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\xff", bytes))) + `"}`
}

func TestAPayloadOfTheLargestSizePassesAndNoLargerOne(t *testing.T) {
	const most = 10_000
	to := open(t, queue.WithMaxPayload(most))
	text := `{"text":"` + strings.Repeat(`\u0001`, most) + `"}` // the longest form
	_, err := importText(t, to, base64Line(most)+"\n"+text+"\n"+base64Line(most+1), archive.ImportOptions{Name: "x"})
	matches(t, err, archive.ErrLine, queue.ErrPayloadTooLarge)
	if got := payloads(t, to); len(got) != 2 || len(got[0]) != most || len(got[1]) != most {
		t.Errorf("%d jobs", len(got))
	}
}

func TestALargePayloadPassesByDefault(t *testing.T) {
	to := open(t)
	mustImport(t, to, base64Line(queue.DefaultMaxPayload), archive.ImportOptions{Name: "x"})
	if got := payloads(t, to); len(got) != 1 || len(got[0]) != queue.DefaultMaxPayload {
		t.Errorf("%d jobs", len(got))
	}
}

func TestAReaderThatFailsLeavesWhatItGave(t *testing.T) {
	to := open(t)
	text := export(t, numbered(t, 5), "")
	at := strings.LastIndex(text, `{"id":5`) + 20
	gone := errors.New("the wire is cut")
	_, err := archive.Import(t.Context(), to, io.MultiReader(strings.NewReader(text[:at]), failing{gone}), archive.ImportOptions{})
	matches(t, err, gone)
	if diff := cmp.Diff(numbers(4), payloads(t, to)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	mustImport(t, to, text, archive.ImportOptions{})
	if diff := cmp.Diff(numbers(5), payloads(t, to)); diff != "" {
		t.Errorf("jobs after a repeat (-want +got):\n%s", diff)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestAnImportEndsWithItsContextAndGoesOn(t *testing.T) {
	to := open(t)
	text := export(t, numbered(t, 1500), "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := 0
	_, err := archive.Import(ctx, to, strings.NewReader(text), archive.ImportOptions{Progress: func(r archive.ImportResult) {
		if told = r.Stored; told > 200 {
			cancel()
		}
	}})
	matches(t, err, context.Canceled)
	if n := len(payloads(t, to)); n != told || n >= 1500 {
		t.Errorf("%d jobs, told %d", n, told)
	}
	res := mustImport(t, to, text, archive.ImportOptions{})
	if diff := cmp.Diff(numbers(1500), payloads(t, to)); diff != "" || res.Stored != 1500-told {
		t.Errorf("%+v; jobs (-want +got):\n%s", res, diff)
	}
}
