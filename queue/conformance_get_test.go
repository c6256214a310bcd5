package queue_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

var orderCases = []conformanceCase{
	{name: "Rule12_HigherPriorityComesFirstThenLowerId", run: func(t *testing.T, w *world) {
		for i, p := range []int16{0, 5, -5, 5, 0, 32767, -32768} {
			w.mustPut(fmt.Sprintf("%d/%d", p, i), priority(p))
		}
		w.equal("order", []string{"32767/5", "5/1", "5/3", "0/0", "0/4", "-5/2", "-32768/6"}, w.drain())
	}},
	{name: "Rule12_AJobGivenBackComesBeforeYoungerOnes", run: func(t *testing.T, w *world) {
		for _, p := range []string{"a", "b", "c"} {
			w.mustPut(p)
		}
		w.ok(w.nack(w.mustGet(), errBoom))
		j := w.mustGet()
		w.equal("nacked", "a", string(j.Payload))
		w.ok(w.release(j))
		j = w.mustGet()
		w.equal("released", "a", string(j.Payload))
		w.advance(queue.DefaultLease)
		w.equal("reclaimed", []string{"a", "b", "c"}, w.drain())
	}},
	{name: "Rule12_ADueJobTakesThePlaceOfItsId", run: func(t *testing.T, w *world) {
		w.mustPut("late", delayed(2*time.Second))
		w.mustPut("early", delayed(time.Second))
		w.mustPut("plain")
		w.mustPut("urgent", priority(1), delayed(time.Second))
		w.advance(time.Second)
		w.equal("urgent", "urgent", string(w.mustGet().Payload))
		w.advance(time.Second)
		w.equal("the rest", []string{"late", "early", "plain"}, w.drain())
	}},
	{name: "Rule12_MoreThanAStepFallsDueInOrderOfTime", run: func(t *testing.T, w *world) {
		const n = 1200
		jobs := make([]jobSpec, n)
		for i := range jobs { // the youngest is due first
			jobs[i] = spec(fmt.Sprint(i), delayed(time.Duration(n-i)*time.Millisecond))
		}
		w.ok(second(w.putMany(jobs...)))
		w.advance(time.Hour)
		w.counts(queue.Stats{Ready: n})
		first, err := strconv.Atoi(string(w.mustGet().Payload))
		w.ok(err)
		if first < n-1000 || first == n-1 {
			t.Fatalf("the first is %d: not the lowest id of a step of at most 1000", first)
		}
		seen := 1
		for seen < n {
			claimed, err := w.tryGetMany(1000)
			w.ok(err)
			seen += len(claimed)
		}
		w.equal("delivered", n, seen)
	}},
	{name: "Rule12_GetManyIsInOrderToo", run: func(t *testing.T, w *world) {
		for i, p := range []int16{0, 1, 0, 2, 1} {
			w.mustPut(fmt.Sprintf("%d/%d", p, i), priority(p))
		}
		jobs, err := w.tryGetMany(4)
		w.ok(err)
		var got []string
		for _, j := range jobs {
			got = append(got, string(j.Payload))
		}
		w.equal("order", []string{"2/3", "1/1", "1/4", "0/0"}, got)
	}},
}

var claimCases = []conformanceCase{
	{name: "Rule13_TheReceiversLeaseCounts", run: func(t *testing.T, w *world) {
		w.options(lease(time.Hour)).mustPut("x")
		j := w.options(lease(time.Second)).mustGet()
		w.equal("the lease's end", w.now().Add(time.Second), j.LeaseUntil)
		w.ok(w.release(j))
		w.equal("the default", w.now().Add(time.Minute), w.mustGet().LeaseUntil)
		w.advance(time.Minute)
		jobs, err := w.options(lease(3 * time.Millisecond)).tryGetMany(1)
		w.ok(err)
		w.equal("of a batch", w.now().Add(3*time.Millisecond), jobs[0].LeaseUntil)
	}},
	{name: "Rule13_LeasesAreFrom1MillisecondTo100Years", run: func(t *testing.T, w *world) {
		w.mustPut("x")
		for _, d := range []time.Duration{-1, 1, time.Millisecond - 1, century + 1} {
			w.is(second(w.options(lease(d)).tryGet()), queue.ErrInvalid)
		}
		j := w.options(lease(century)).mustGet()
		w.equal("a century", w.now().Add(century), j.LeaseUntil)
		w.ok(w.release(j))
		w.ok(w.ack(w.options(lease(time.Millisecond)).mustGet()))
	}},
	{name: "Rule14_AReceiptIsTheDeliveryAndRandomHex", run: func(t *testing.T, w *world) {
		id := w.mustPut("x", deliveries(100))
		form := regexp.MustCompile(`^([0-9]+)-[0-9a-f]{32}$`)
		seen := map[string]bool{}
		for n := int64(1); n <= 8; n++ {
			var j *queue.Job
			if n%2 == 0 {
				jobs, err := w.tryGetMany(2)
				w.ok(err)
				j = jobs[0]
			} else {
				j = w.mustGet()
			}
			m := form.FindStringSubmatch(j.Receipt)
			if m == nil || m[1] != fmt.Sprint(n) || j.Delivery != n || seen[j.Receipt[len(m[1]):]] {
				t.Fatalf("receipt %q of delivery %d, number %d", j.Receipt, n, j.Delivery)
			}
			seen[j.Receipt[len(m[1]):]] = true
			switch n % 4 { // the number grows whatever becomes of the delivery
			case 0:
				w.ok(w.release(j))
			case 1:
				w.ok(w.nack(j, errBoom))
			case 2:
				w.advance(queue.DefaultLease)
			case 3:
				w.ok(w.fail(j, errBoom))
				w.ok(w.retry(id))
			}
		}
	}},
	{name: "Rule15_TryGetOfNothingIsEmptyAtOnce", run: func(t *testing.T, w *world) {
		w.mustBeEmpty()
		w.is(second(w.tryGetMany(10)), queue.ErrEmpty)
		w.mustPut("later", delayed(time.Hour))
		w.mustBeEmpty()
		w.mustPut("x")
		w.mustGet()
		w.mustBeEmpty()
		w.is(second(w.peek()), queue.ErrEmpty)
	}},
	{name: "Rule15_GetEndsWithItsContext", run: func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		w.is(second(w.get(ctx)), context.DeadlineExceeded)
		ctx, cancel = context.WithCancel(context.Background())
		get := inBackground(func() ([]*queue.Job, error) { return w.getMany(ctx, 5) })
		w.untilWaiting(1)
		cancel()
		w.is(second(get.await(t)), context.Canceled)
		w.mustPut("x")
		w.is(second(w.get(ctx)), context.Canceled)
		w.counts(queue.Stats{Ready: 1})
	}},
	{name: "Rule15_ACancelledGetNeverKeepsAJob", run: func(t *testing.T, w *world) {
		for i := range 40 {
			ctx, cancel := context.WithCancel(context.Background())
			get := inBackground(func() (*queue.Job, error) { return w.peer(i).get(ctx) })
			put := inBackground(func() (queue.PutResult, error) { return w.peer(i+1).put("x", deliveries(1)) })
			if i%2 == 0 {
				_, err := put.await(t)
				w.ok(err)
				cancel()
			} else {
				cancel()
				_, err := put.await(t)
				w.ok(err)
			}
			j, err := get.await(t)
			if err != nil {
				w.is(err, context.Canceled)
				j = w.mustGet() // it is still there, its only delivery not used
			}
			w.ok(w.ack(j))
		}
		w.counts(queue.Stats{Acked: 40})
	}},
	{name: "Rule15_GetManyGivesWhatIsThere", run: func(t *testing.T, w *world) {
		for range 3 {
			w.mustPut("x")
		}
		for _, n := range []int{0, -1} {
			w.is(second(w.tryGetMany(n)), queue.ErrInvalid)
			w.is(second(w.getMany(context.Background(), n)), queue.ErrInvalid)
		}
		jobs, err := w.getMany(context.Background(), 2)
		w.ok(err)
		w.equal("jobs", 2, len(jobs))
		w.equal("receipts", true, jobs[0].Receipt != jobs[1].Receipt)
		jobs, err = w.tryGetMany(1 << 40)
		w.ok(err)
		w.equal("jobs", 1, len(jobs))
	}},
	{name: "Rule15_EveryJobGoesToOneReceiver", run: func(t *testing.T, w *world) {
		const n = 60
		jobs := make([]jobSpec, n)
		for i := range jobs {
			jobs[i] = spec(fmt.Sprint(i))
		}
		w.ok(second(w.putMany(jobs...)))
		var receivers []*pending[[]int64]
		for i := range 6 {
			receivers = append(receivers, inBackground(func() (ids []int64, err error) {
				for {
					j, err := w.peer(i).tryGet()
					if err != nil {
						return ids, err
					}
					ids = append(ids, j.ID)
					if err := w.peer(i + 1).ack(j); err != nil {
						return ids, fmt.Errorf("ack: %w", err)
					}
				}
			}))
		}
		times := map[int64]int{}
		for _, r := range receivers {
			ids, err := r.await(t)
			w.is(err, queue.ErrEmpty)
			for _, id := range ids {
				times[id]++
			}
		}
		for id, n := range times {
			w.equal(fmt.Sprint("deliveries of ", id), 1, n)
		}
		w.equal("delivered", n, len(times))
		w.counts(queue.Stats{Acked: n})
	}},
	{name: "Rule16_ALeaseEndsAtItsInstant", run: func(t *testing.T, w *world) {
		q := w.options(lease(time.Second))
		id := q.mustPut("x")
		q.mustGet()
		w.advance(time.Second - time.Millisecond)
		w.mustBeEmpty()
		w.counts(queue.Stats{Processing: 1})
		w.advance(time.Millisecond)
		w.counts(queue.Stats{Processing: 1, Expired: 1})
		j := q.mustGet()
		w.equal("again", []any{id, 2, int64(2)}, []any{j.ID, j.Attempt, j.Delivery})
		w.equal("last error", "", j.LastError)
	}},
	{name: "Rule16_TheLastDeliverysLeaseEndFailsTheJobThoughNothingIsClaimed", run: func(t *testing.T, w *world) {
		id := w.mustPut("x", deliveries(1))
		w.mustGet()
		w.advance(queue.DefaultLease)
		w.mustBeEmpty()
		rec := w.mustShow(id)
		w.equal("state", []any{queue.Failed, queue.LeaseExpired, 1}, []any{rec.State, rec.Reason, rec.Attempts})
		w.counts(queue.Stats{Failed: 1})
	}},
	{name: "Rule16_ReclaimGoesOnUntilNoneIsLeft", run: func(t *testing.T, w *world) {
		const n = 1500
		jobs := make([]jobSpec, n)
		for i := range jobs {
			jobs[i] = spec("x", deliveries(1+i%2))
		}
		w.ok(second(w.putMany(jobs...)))
		for claimed := 0; claimed < n; {
			some, err := w.tryGetMany(1000)
			w.ok(err)
			claimed += len(some)
		}
		w.equal("nothing yet", queue.Reclaimed{}, w.mustReclaim())
		w.advance(queue.DefaultLease)
		w.counts(queue.Stats{Processing: n, Expired: n})
		w.equal("of another queue", queue.Reclaimed{}, w.on("other").mustReclaim())
		w.equal("reclaimed", queue.Reclaimed{Returned: n / 2, Failed: n / 2}, w.mustReclaim())
		w.equal("nothing more", queue.Reclaimed{}, w.mustReclaim())
		w.counts(queue.Stats{Ready: n / 2, Failed: n / 2})
	}},
	{name: "Rule16_AReclaimLooksAtEachJobAsItIsByThen", run: func(t *testing.T, w *world) {
		sweep := func() { // a reclaim that has something to do
			w.mustPut("short", priority(9))
			w.ok(second(w.options(lease(time.Second)).tryGet()))
			w.advance(time.Second)
			w.equal("swept", queue.Reclaimed{Returned: 1}, w.mustReclaim())
			w.ok(w.ack(w.mustGet()))
		}
		acked, extended := w.mustPut("acked"), w.mustPut("extended")
		first, again := w.mustGet(), w.mustGet()
		sweep()
		w.ok(w.ack(first))
		w.ok(second(w.extend(again, time.Hour)))
		w.advance(queue.DefaultLease)
		sweep()
		w.equal("states", []queue.State{queue.Acked, queue.Leased}, []queue.State{w.mustShow(acked).State, w.mustShow(extended).State})
		w.ok(w.ack(again))
	}},
	{name: "Rule17_EveryDeliveryCountsAlsoTheOnesThatNobodySettled", run: func(t *testing.T, w *world) {
		id := w.mustPut("kills its process", deliveries(3))
		for n := 1; n <= 3; n++ {
			j := w.mustGet()
			w.equal("attempt", n, j.Attempt)
			w.advance(queue.DefaultLease)
		}
		w.mustBeEmpty()
		rec, story, err := w.show(id)
		w.ok(err)
		w.equal("the end", []any{queue.Failed, queue.LeaseExpired, 3, 3}, []any{rec.State, rec.Reason, rec.Attempts, len(story)})
	}},
}

func (l *lane) mustReclaim() queue.Reclaimed {
	l.w.t.Helper()
	got, err := l.reclaim()
	l.w.ok(err)
	return got
}
