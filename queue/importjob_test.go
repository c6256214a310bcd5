package queue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

func TestAJobThatCouldNotBeThereIsRefused(t *testing.T) {
	s := queuetest.Open(t, queue.WithMaxPayload(1000))
	im := beginImport(t, s, queue.ImportOptions{Name: "x", IDs: queue.IDRange{First: 5, Last: 9}})
	now := time.Now()
	good := minimal("x")
	good.ID = 6
	if _, err := im.Add(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*queue.Archived){
		"an unknown state":           func(j *queue.Archived) { j.State = "lost" },
		"no queue":                   func(j *queue.Archived) { j.Queue = "" },
		"a queue's control chars":    func(j *queue.Archived) { j.Queue = "a\nb" },
		"a key's control chars":      func(j *queue.Archived) { j.JobID = "\x1b[0m" },
		"a long key":                 func(j *queue.Archived) { j.JobID = strings.Repeat("k", 1025) },
		"pending without a key":      func(j *queue.Archived) { j.Pending = true },
		"a header without a name":    func(j *queue.Archived) { j.Headers = map[string]string{"": "x"} },
		"large headers":              func(j *queue.Archived) { j.Headers = map[string]string{"x": strings.Repeat("x", 1<<14)} },
		"an id below the range":      func(j *queue.Archived) { j.ID = 4 },
		"an id above the range":      func(j *queue.Archived) { j.ID = 10 },
		"an id again":                func(j *queue.Archived) { j.ID = 6 },
		"negative attempts":          func(j *queue.Archived) { j.Attempts = -1 },
		"used up but ready":          func(j *queue.Archived) { j.Attempts, j.MaxAttempts = 4, 4 },
		"used up but delayed":        func(j *queue.Archived) { j.State, j.Attempts, j.MaxAttempts = queue.Delayed, 4, 4 },
		"negative max attempts":      func(j *queue.Archived) { j.MaxAttempts = -1 },
		"too many max attempts":      func(j *queue.Archived) { j.MaxAttempts = 1<<30 + 2 },
		"fewer deliveries":           func(j *queue.Archived) { j.Attempts, j.Delivery = 2, 1 },
		"a delivery beyond JSON":     func(j *queue.Archived) { j.Delivery = 1 << 53 },
		"leased without an end":      func(j *queue.Archived) { j.State, j.Attempts = queue.Leased, 1 },
		"leased without an attempt":  func(j *queue.Archived) { j.State, j.LeaseUntil = queue.Leased, now },
		"leased beyond its attempts": func(j *queue.Archived) { j.State, j.LeaseUntil, j.Attempts, j.MaxAttempts = queue.Leased, now, 5, 4 },
		"ready with a lease":         func(j *queue.Archived) { j.LeaseUntil = now },
		"ready with a receipt":       func(j *queue.Archived) { j.Receipt = "1-x" },
		"ready with a reason":        func(j *queue.Archived) { j.Reason = queue.Permanent },
		"an unknown reason":          func(j *queue.Archived) { j.State, j.Reason = queue.Failed, "bored" },
		"available in a 101 years":   func(j *queue.Archived) { j.AvailableAt = now.AddDate(101, 0, 0) },
		"created before 1970":        func(j *queue.Archived) { j.CreatedAt = time.Unix(-1, 0) },
		"claimed in a 101 years":     func(j *queue.Archived) { j.ClaimedAt = now.AddDate(101, 0, 0) },
		"an error that is no text":   func(j *queue.Archived) { j.LastError = "\xff" },
		"a history out of order": func(j *queue.Archived) {
			j.Delivery, j.History = 2, []queue.Delivery{{Number: 2, Outcome: "nacked", Start: now, End: now}, {Number: 2, Outcome: "nacked", Start: now, End: now}}
		},
		"a history of the future": func(j *queue.Archived) {
			j.History = []queue.Delivery{{Number: 1, Outcome: "nacked", Start: now, End: now}}
		},
		"a history without an outcome": func(j *queue.Archived) {
			j.Delivery, j.History = 1, []queue.Delivery{{Number: 1, Start: now, End: now}}
		},
		"a history without times": func(j *queue.Archived) { j.Delivery, j.History = 1, []queue.Delivery{{Number: 1, Outcome: "nacked"}} },
	} {
		job := minimal("x")
		job.ID = 7
		change(&job)
		if _, err := im.Add(job); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := minimal(strings.Repeat("x", 1001))
	large.ID = 7
	if _, err := im.Add(large); !errors.Is(err, queue.ErrPayloadTooLarge) {
		t.Errorf("a payload over the limit: %v", err)
	}
	if res := bring(t, im); res.Stored != 1 {
		t.Errorf("the job before them: %+v", res)
	}
	for _, opts := range []queue.ImportOptions{{}, {Name: "a\x00"}, {Name: "x", IDs: queue.IDRange{First: 1, Last: 1 << 53}}, {Name: "x", IDs: queue.IDRange{First: -1}},
		{Name: "x", Settings: []queue.QueueSettings{{}}}, {Name: "x", Settings: []queue.QueueSettings{{Queue: "q", KeepAcked: new(time.Duration(-1))}}}} {
		if _, err := s.BeginImport(t.Context(), opts); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

// Whatever comes, an import refuses it or the file is as sound as before, and the job can be worked off.
func TestWhateverAnImportTakesIsSound(t *testing.T) {
	s := queuetest.Open(t, queue.WithDurability(queue.Normal))
	runs := 0
	instant := rapid.Custom(func(r *rapid.T) time.Time {
		if rapid.Bool().Draw(r, "none") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(-10, 1<<33).Draw(r, "seconds"), 0)
	})
	few := rapid.IntRange(-1, 5)
	rapid.Check(t, func(r *rapid.T) {
		runs++
		im := beginImport(t, s, queue.ImportOptions{Name: fmt.Sprintf("run %d", runs)})
		for range 5 {
			job := queue.Archived{Record: queue.Record{
				Queue:    rapid.SampledFrom([]string{"a", "b", ""}).Draw(r, "queue"),
				State:    rapid.SampledFrom([]queue.State{"", queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed}).Draw(r, "state"),
				JobID:    rapid.SampledFrom([]string{"", "k", "l"}).Draw(r, "key"),
				Pending:  rapid.Bool().Draw(r, "pending"),
				Payload:  rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(r, "payload"),
				Priority: rapid.Int16().Draw(r, "priority"),
				Attempts: few.Draw(r, "attempts"), MaxAttempts: few.Draw(r, "max attempts"), Delivery: int64(few.Draw(r, "delivery")),
				Reason:      rapid.SampledFrom([]queue.Reason{"", queue.Permanent, "other"}).Draw(r, "reason"),
				Receipt:     rapid.SampledFrom([]string{"", "1-x"}).Draw(r, "receipt"),
				AvailableAt: instant.Draw(r, "available"), LeaseUntil: instant.Draw(r, "lease"), CreatedAt: instant.Draw(r, "created"),
			}}
			for range rapid.IntRange(0, 2).Draw(r, "deliveries") {
				job.History = append(job.History, queue.Delivery{Number: int64(few.Draw(r, "number")), Outcome: "nacked", Start: start, End: start})
			}
			if _, err := im.Add(job); err != nil && !errors.Is(err, queue.ErrInvalid) {
				r.Fatalf("%+v: %v", job, err)
			}
		}
		bring(t, im)
		isSound(t, s)
	})
	// What is there can be claimed and acked.
	for _, name := range []string{"a", "b"} {
		q := named(t, s, name)
		for {
			job, err := q.TryGet(t.Context())
			if errors.Is(err, queue.ErrEmpty) {
				break
			}
			if err == nil {
				err = job.Ack(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	isSound(t, s)
}
