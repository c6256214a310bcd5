package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/localqueue/localqueue/generics"
	"github.com/localqueue/localqueue/queue"
)

func eachOriginal(t *testing.T, run func(t *testing.T, f fixture)) {
	t.Helper()
	eachFixture(t, func(t *testing.T, f fixture) {
		if f.original {
			run(t, f)
		}
	})
}

// payload is the one job of the fixture's hard payloads that is noted so.
func (f fixture) payload(t testing.TB, note string) fixtureJob {
	t.Helper()
	for _, j := range f.jobs {
		if j.Record.Queue == "payloads" && j.note == note {
			return j
		}
	}
	t.Fatalf("no payload is noted %q", note)
	return fixtureJob{}
}

// hardPayloads is the fixture with each of those jobs in a queue of its own.
type hardPayloads struct {
	fixture
	s *queue.Store
}

func openHardPayloads(t *testing.T, f fixture) hardPayloads {
	t.Helper()
	dir := f.unpack(t)
	db, err := openRaw(dir)
	ok(t, err)
	_, err = db.Exec("UPDATE messages SET queue = 'payload ' || id WHERE queue = 'payloads'")
	ok(t, errors.Join(err, db.Close()))
	return hardPayloads{f, openStore(t, dir)}
}

func typed[T any](t *testing.T, h hardPayloads, note string) (*generics.Queue[T], fixtureJob) {
	t.Helper()
	j := h.payload(t, note)
	q, err := generics.On[T](h.s, fmt.Sprint("payload ", j.Record.ID))
	ok(t, err)
	return q, j
}

// decodes wants the right value, and gives the job back.
func decodes[T any](t *testing.T, h hardPayloads, note string, want T) {
	t.Helper()
	q, _ := typed[T](t, h, note)
	j, err := q.TryGet(t.Context())
	ok(t, err)
	same(t, note, want, j.Data)
	ok(t, j.Release(t.Context()))
}

// deadLetter wants the job among the dead letters, its bytes as they were, and takes it back.
func deadLetter[T any](t *testing.T, h hardPayloads, note string) {
	t.Helper()
	q, want := typed[T](t, h, note)
	if j, err := q.TryGet(t.Context()); !errors.Is(err, queue.ErrEmpty) {
		t.Fatalf("%s is delivered: %+v (%v)", note, j, err)
	}
	r, _, err := q.Raw().Show(t.Context(), want.Record.ID)
	ok(t, err)
	same(t, note, [...]any{queue.Failed, queue.InvalidPayload, want.SHA256}, [...]any{r.State, r.Reason, hash(r.Payload)})
	ok(t, q.Raw().RetryFailed(t.Context(), want.Record.ID))
}

func TestWhatPythonWroteIsReadAsItIsOrNotAtAll(t *testing.T) {
	eachOriginal(t, func(t *testing.T, f fixture) {
		h := openHardPayloads(t, f)
		decodes(t, h, "object", map[string]string{"task": "send-email", "to": "hello@example.com"})
		decodes(t, h, "text of many scripts", "grüße, 世界, 🎉, <script>&")
		decodes(t, h, "a zero byte", "a\x00b")
		decodes(t, h, "UTF-8 as it is", map[string]string{"ü": "世"})
		decodes(t, h, "a big integer", struct{ ID int64 }{1970670598291982290})
		decodes[any](t, h, "a big integer", map[string]any{"id": json.Number("1970670598291982290")})
		decodes[any](t, h, "a huge integer", json.Number("1000000000000000000000000000000"))
		decodes(t, h, "floats", []float64{0.1, 1e308, 5e-324, 0})
		decodes(t, h, "empty text", "")
		decodes(t, h, "empty list", []int{})
		decodes(t, h, "null", (*int)(nil))

		huge, _ := typed[*big.Int](t, h, "a huge integer")
		j, err := huge.TryGet(t.Context())
		ok(t, err)
		same(t, "a huge integer", "1000000000000000000000000000000", j.Data.String())
		ok(t, j.Release(t.Context()))

		deadLetter[int64](t, h, "a huge integer")
		deadLetter[[]int64](t, h, "a negative huge integer")
		for _, note := range []string{"NaN", "infinities", "a surrogate alone", "no bytes", "not UTF-8", "not JSON"} {
			deadLetter[any](t, h, note)
		}
	})
}

// A queue of anything takes all that is JSON as the standard has it, and goes on past what isn't.
func TestATypedQueueGoesOnPastWhatItCannotRead(t *testing.T) {
	eachOriginal(t, func(t *testing.T, f fixture) {
		ctx := context.Background()
		s := openStore(t, f.unpack(t))
		q, err := generics.On[any](s, "payloads")
		ok(t, err)
		delivered := map[int64]bool{}
		for {
			j, err := q.TryGet(ctx)
			if errors.Is(err, queue.ErrEmpty) {
				break
			}
			ok(t, err)
			delivered[j.ID] = true
			ok(t, j.Ack(ctx))
		}
		for _, j := range f.jobs {
			if j.Record.Queue == "payloads" {
				same(t, j.note+" is delivered", j.strict, delivered[j.Record.ID])
			}
		}
		healthy(t, s)
	})
}
