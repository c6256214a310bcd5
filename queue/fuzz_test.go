package queue_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

// Each target keeps one Store for all its inputs, and leaves no job of theirs in it.
//
//	go test ./queue -run xxx -fuzz FuzzReceipts -fuzztime 1m

func FuzzReceiptsThatWereNeverGivenSettleNothing(f *testing.F) {
	q := queuetest.Open(f, queue.WithDurability(queue.Normal)).Default()
	put, err := q.Put(f.Context(), []byte("held"))
	if err != nil {
		f.Fatal(err)
	}
	job, err := q.TryGet(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	before, _, err := q.Show(f.Context(), put.ID)
	if err != nil {
		f.Fatal(err)
	}
	hex := strings.Repeat("0123456789abcdef", 2)
	for _, receipt := range []string{"", "-", "1-", "1-" + hex, "2-" + hex, "0-" + hex, "-1-" + hex, "+1-" + hex, "99999999999999999999-" + hex, "1-" + strings.ToUpper(hex),
		hex, "1-" + hex[1:] + "\x00", "1:" + hex, "\xff\xfe", `"]`, "1-" + hex + "'; DROP TABLE messages; --"} {
		f.Add(put.ID, receipt)
	}
	for _, id := range []int64{0, -1, 2, 1 << 62, -1 << 63} {
		f.Add(id, "1-"+hex)
	}
	f.Fuzz(func(t *testing.T, id int64, receipt string) {
		if receipt == job.Receipt {
			t.Skip("that one was given")
		}
		ctx, ref := t.Context(), queue.Ref{ID: id, Receipt: receipt}
		refs := []queue.Ref{ref, ref}
		_, extended := q.Extend(ctx, id, receipt, time.Second)
		acked, err := q.AckMany(ctx, refs[:1])
		twice, err2 := q.AckMany(ctx, refs)
		beats, err3 := q.Heartbeat(ctx, refs[:1], time.Hour)
		held, err4 := q.Held(ctx, refs)
		if err := errors.Join(err, err2, err3, err4); err != nil {
			t.Fatalf("a batch with receipt %q fails as a whole: %v", receipt, err)
		}
		answers := append(append(acked, twice...), beats[0].Err, extended, q.Ack(ctx, id, receipt), q.Nack(ctx, id, receipt, nil), q.Fail(ctx, id, receipt, nil), q.Release(ctx, id, receipt))
		for i, err := range answers {
			lost, ok := errors.AsType[*queue.LeaseLostError](err)
			if !ok || lost.ID != id || (id != put.ID) != (lost.Cause == queue.LossNoSuchJob) {
				t.Errorf("answer %d to receipt %q for job %d: %v", i, receipt, id, err)
			}
		}
		if held[0] || held[1] {
			t.Errorf("receipt %q is said to hold job %d", receipt, id)
		}
		after, story, err := q.Show(ctx, put.ID)
		if diff := cmp.Diff(before, after); diff != "" || len(story) > 0 || err != nil {
			t.Errorf("the job's true owner is touched (-before +after):\n%s\n%v %v", diff, story, err)
		}
	})
}

func FuzzCursorsAreRefusedOrGiveAPage(f *testing.F) {
	s := queuetest.Open(f, queue.WithDurability(queue.Normal))
	q, states := s.Default(), []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed}
	for range 15 {
		if _, err := q.Put(f.Context(), []byte("x")); err != nil {
			f.Fatal(err)
		}
	}
	for i := range 12 {
		job, err := q.TryGet(f.Context())
		if err == nil {
			err = []func() error{
				func() error { return nil },
				func() error { return job.Ack(f.Context()) },
				func() error { return job.Fail(f.Context(), nil) },
				func() error { return job.Nack(f.Context(), nil, queue.Delay(time.Hour)) },
			}[i%4]()
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	for i, state := range states {
		page, err := q.List(f.Context(), state, queue.ListOptions{Limit: 2})
		if err != nil || page.Next == "" {
			f.Fatalf("the first page of %s: %+v, %v", state, page, err)
		}
		f.Add(uint8(i), page.Next)
		f.Add(uint8(i+1), page.Next)
	}
	for _, text := range []string{"", "x", "null", "{}", `{"q":"default","s":"ready"}`, `{"q":"default","s":"ready","k":1e400,"i":-9223372036854775808}`,
		`{"q":"default","s":"failed","i":9223372036854775807}`, `{"q":"other","s":"ready","k":0,"i":0}`, `[1]`} {
		f.Add(uint8(0), base64.RawURLEncoding.EncodeToString([]byte(text)))
		f.Add(uint8(4), text)
	}
	f.Fuzz(func(t *testing.T, i uint8, after string) {
		state := states[int(i)%len(states)]
		page, err := q.List(t.Context(), state, queue.ListOptions{Limit: 2, After: after})
		if err != nil && (!errors.Is(err, queue.ErrInvalid) || len(page.Records) > 0 || page.Next != "") {
			t.Fatalf("cursor %q: %+v, %v", after, page, err)
		}
		for _, r := range page.Records {
			if r.State != state || len(page.Records) > 2 {
				t.Errorf("cursor %q in the list of %s: %d records, among them %+v", after, state, len(page.Records), r)
			}
		}
	})
}

func fuzzText(s string, most int) bool {
	return len(s) > 0 && len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func FuzzQueueNamesAreRefusedOrWork(f *testing.F) {
	s := queuetest.Open(f, queue.WithDurability(queue.Normal))
	for _, name := range []string{"", "a", "a b", "é", "\x00", "a\n", "\xff", "'; --", "default", strings.Repeat("n", 255), strings.Repeat("n", 256), strings.Repeat("é", 128), "%s", "\u2028", "\u0085", "/../x", "a\U0001F600"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		q, err := s.Queue(name)
		if !fuzzText(name, 255) {
			if !errors.Is(err, queue.ErrInvalid) {
				t.Fatalf("queue name %q: %v", name, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("queue name %q: %v", name, err)
		}
		ctx := t.Context()
		put, err := q.Put(ctx, []byte(name))
		if err != nil {
			t.Fatal(err)
		}
		st, err := q.Stats(ctx)
		if err != nil || st.Ready != 1 || st.Queue != name {
			t.Errorf("stats of queue %q: %+v, %v", name, st, err)
		}
		job, err := q.TryGet(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if job.ID != put.ID || job.Queue != name || string(job.Payload) != name {
			t.Errorf("queue %q gives %+v", name, job)
		}
		fuzzRemove(t, q, job)
	})
}

// fuzzRemove acks jobs and removes every trace of them.
func fuzzRemove(t *testing.T, q *queue.Queue, jobs ...*queue.Job) {
	t.Helper()
	for _, j := range jobs {
		if err := j.Ack(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n, err := q.Purge(t.Context(), queue.PurgeOptions{}); err != nil || n != len(jobs) {
		t.Errorf("purge removed %d of %d: %v", n, len(jobs), err)
	}
}

func FuzzHeadersComeBackAsTheyWerePut(f *testing.F) {
	q := queuetest.Open(f, queue.WithDurability(queue.Normal)).Default()
	f.Add("trace", "1", "", "")
	f.Add("a", "", "a", "again")
	f.Add("<&>\u2028", "\x00\n\"\\", "é", "\U0001F600")
	f.Add("\xff", "x", "a", "\xc3")
	f.Add("k", strings.Repeat("v", 16<<10), "k2", "")
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		ctx, want := t.Context(), map[string]string{name1: value1}
		opts := []queue.PutOption{queue.Header(name1, value1)}
		good := name1 != "" && utf8.ValidString(name1) && utf8.ValidString(value1)
		if name2 != "" || value2 != "" {
			want[name2] = value2
			opts = append(opts, queue.Header(name2, value2))
			good = good && name2 != "" && utf8.ValidString(name2) && utf8.ValidString(value2)
		}
		size := 0
		for k, v := range want {
			size += len(k) + len(v)
		}
		good = good && size <= 16<<10
		_, err := q.Put(ctx, nil, opts...)
		_, err2 := q.PutMany(ctx, []queue.NewJob{{}, {Options: opts}})
		if !good {
			if !errors.Is(err, queue.ErrInvalid) || !errors.Is(err2, queue.ErrInvalid) {
				t.Fatalf("headers %q: %v, %v", want, err, err2)
			}
			return
		}
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("headers %q: %v", want, err)
		}
		jobs, err := q.TryGetMany(ctx, 3)
		if err != nil || len(jobs) != 3 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		if !maps.Equal(jobs[0].Headers, want) || jobs[1].Headers != nil || !maps.Equal(jobs[2].Headers, want) {
			t.Errorf("headers %q came back as %q, %q and %q", want, jobs[0].Headers, jobs[1].Headers, jobs[2].Headers)
		}
		fuzzRemove(t, q, jobs...)
	})
}

func FuzzPayloadsAndKeysComeBackByteForByte(f *testing.F) {
	q := queuetest.Open(f, queue.WithDurability(queue.Normal)).Default()
	f.Add([]byte(nil), []byte{}, "k")
	f.Add([]byte{0}, []byte("\xff\x00\xfe"), "\u2028<&>\"\\")
	f.Add(bytes.Repeat([]byte("a"), 2000), bytes.Repeat([]byte{0}, 2001), "\U0001F600")
	f.Add([]byte(`{"n":NaN}`), []byte("\xef\xbb\xbf"), "key\n")
	f.Add([]byte("x"), []byte("y"), strings.Repeat("é", 512))
	f.Add([]byte("x"), []byte("y"), "")
	f.Fuzz(func(t *testing.T, a, b []byte, key string) {
		ctx := t.Context()
		batch := []queue.NewJob{{Payload: a}, {Payload: b, Options: []queue.PutOption{queue.JobID(key)}}, {Payload: nil}, {Payload: a, Options: []queue.PutOption{queue.JobID(key)}}, {Payload: b}}
		results, err := q.PutMany(ctx, batch)
		if !fuzzText(key, 1024) {
			if !errors.Is(err, queue.ErrInvalid) {
				t.Fatalf("key %q: %v", key, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err = q.Put(ctx, slices.Concat(b, a)); err != nil {
			t.Fatal(err)
		}
		again, err := q.Put(ctx, a, queue.JobID(key))
		if want := (queue.PutResult{ID: results[1].ID, Duplicate: true}); err != nil || results[3] != want || again != want {
			t.Errorf("the key %q, put again: in the batch %+v, alone %+v, %v; want %+v", key, results[3], again, err, want)
		}
		jobs, err := q.TryGetMany(ctx, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range jobs {
			got = append(got, fmt.Sprintf("%q %q", j.Payload, j.JobID))
		}
		want := []string{fmt.Sprintf("%q %q", a, ""), fmt.Sprintf("%q %q", b, key), `"" ""`, fmt.Sprintf("%q %q", b, ""), fmt.Sprintf("%q %q", slices.Concat(b, a), "")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("payloads and keys (-put +got):\n%s", diff)
		}
		fuzzRemove(t, q, jobs...)
	})
}
