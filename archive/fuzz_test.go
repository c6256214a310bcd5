package archive

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/localqueue/localqueue/queue"
)

// Whatever a line is, it is refused or says the same once it has been written again.
func FuzzALineThatIsReadIsWrittenTheSame(f *testing.F) {
	full, err := encodeJob(queue.Archived{
		Record: queue.Record{ID: 17, Queue: "default", State: queue.Failed, JobID: "k", Pending: true, Payload: []byte("\xff"), Headers: map[string]string{"a": "b"},
			Priority: -7, Attempts: 2, MaxAttempts: 4, Delivery: 3, Reason: queue.Permanent, LastError: "<no>", AvailableAt: time.UnixMilli(1), CreatedAt: time.UnixMilli(2),
			UpdatedAt: time.UnixMilli(3), ClaimedAt: time.UnixMilli(4), ClaimedBy: "host:1"},
		History: []queue.Delivery{{Number: 3, Attempt: 2, Start: time.UnixMilli(4), End: time.UnixMilli(5), Outcome: "failed", Error: "no", Worker: "host:1"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	for _, seed := range []string{
		`{"text":""}`, `{"base64":"/wA="}`, `{"payload":{"a":1.0}}`, `{"payload":"\ud83d"}`, `{"text":"\ud83d\ude00"}`, `{"text":"\ud83d"}`, `{"text":"a","base64":""}`,
		`{"localqueue_export_end":1,"jobs":3}`, `{"text":"a","history":[{"start":"2026-07-01T12:00:00+23:59"}]}`, `{"text":"a","headers":{"":""}}`, `[]`, `null`, `{`, "",
		`{"text":"a","created_at":"0001-01-01T00:00:00Z"}`, `{"TEXT":"a","ID":1e3}`, `{"payload":[{"a":1}, "]"] ,"text":"[{\"a\":1},\"]\"]","x":{"y":[{}]} }`, `{"\u0074ext":"a","text":"b"}`, "{\"text\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if h, err := decodeHeader(text); h != nil && (err != nil || decode(text, &header{}, headerShape) != nil) {
			t.Fatalf("what can't be decoded is taken for a header: %v", err)
		}
		job, end, err := decodeJob(text)
		if err != nil || end != nil {
			return
		}
		job.MaxAttempts = max(job.MaxAttempts, 1) // a line may leave it out, a file has it
		again, err := encodeJob(job)
		if err != nil {
			t.Fatalf("%+v can't be written: %v", job, err)
		}
		same, end, err := decodeJob(again[:len(again)-1])
		if err != nil && (job.CreatedAt.Year() > 9998 || job.CreatedAt.Year() < 1) {
			t.Skip("at the ends of time")
		}
		if diff := cmp.Diff(job, same, cmpopts.EquateEmpty()); err != nil || end != nil || diff != "" {
			t.Fatalf("written again as %s (%v, -first +second):\n%s", again, err, diff)
		}
	})
}
