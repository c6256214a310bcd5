//go:build unix

package bench

import (
	"context"
	"strings"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

// books is a queue and a journal about it that a test makes up.
type books struct {
	bed     *bed
	q       *queue.Queue
	journal *journal
}

func newBooks(t *testing.T) *books {
	t.Helper()
	b := &bed{dir: t.TempDir()}
	store, err := b.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	j, err := openJournal(b.journal(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	return &books{b, store.Default(), j}
}

func (b *books) put(t *testing.T) int64 {
	t.Helper()
	res, err := b.q.Put(context.Background(), make([]byte, stampSize))
	if err != nil {
		t.Fatal(err)
	}
	b.journal.write(record{event: evPut, id: res.ID})
	return res.ID
}

func (b *books) claim(t *testing.T) *queue.Job {
	t.Helper()
	j, err := b.q.TryGet(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b.journal.write(record{event: evClaim, id: j.ID, delivery: j.Delivery, until: j.LeaseUntil.UnixMilli()})
	return j
}

func (b *books) ack(t *testing.T, j *queue.Job) {
	t.Helper()
	if err := j.Ack(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.journal.write(record{event: evAck, id: j.ID, delivery: j.Delivery})
}

func (b *books) audit(t *testing.T, a audit) Accounting {
	t.Helper()
	a.journals, a.lease, a.lanes = b.bed.journals, queue.DefaultLease, 1
	acc, err := a.settle(context.Background(), b.q)
	if err != nil {
		t.Fatal(err)
	}
	return acc
}

func TestTheAccountingAgreesWithSoundBooks(t *testing.T) {
	b := newBooks(t)
	for range 3 {
		b.put(t)
		b.ack(t, b.claim(t))
	}
	if acc := b.audit(t, audit{drained: true}); !acc.OK() || acc.Puts != 3 || acc.Acks != 3 {
		t.Errorf("%+v", acc)
	}
}

func TestTheAccountingFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, b *books)
		says  string
	}{
		"lost": {func(t *testing.T, b *books) {
			if err := b.q.Delete(context.Background(), b.put(t)); err != nil {
				t.Fatal(err)
			}
		}, "is lost"},
		"settled twice": {func(t *testing.T, b *books) {
			b.put(t)
			j := b.claim(t)
			b.ack(t, j)
			b.journal.write(record{event: evAck, id: j.ID, delivery: j.Delivery})
		}, "settled 2 times"},
		"claimed twice": {func(t *testing.T, b *books) {
			b.put(t)
			j := b.claim(t)
			b.journal.write(record{event: evClaim, id: j.ID, delivery: j.Delivery, until: j.LeaseUntil.UnixMilli()})
			b.ack(t, j)
		}, "claimed twice"},
		"two owners": {func(t *testing.T, b *books) {
			b.put(t)
			if err := b.claim(t).Release(context.Background()); err != nil { // not recorded: for the books, the lease goes on
				t.Fatal(err)
			}
			b.ack(t, b.claim(t))
		}, "before the lease of delivery 1 had ended"},
		"forgotten": {func(t *testing.T, b *books) { b.put(t) }, "still ready"},
		"held":      {func(t *testing.T, b *books) { b.put(t); b.claim(t) }, "is leased at the end"},
		"from nowhere": {func(t *testing.T, b *books) {
			if _, err := b.q.Put(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			b.ack(t, b.claim(t))
		}, "nobody says to have put"},
		"acked by nobody": {func(t *testing.T, b *books) {
			b.put(t)
			if err := b.claim(t).Ack(context.Background()); err != nil {
				t.Fatal(err)
			}
		}, "nobody says to have done it"},
		"one id for two": {func(t *testing.T, b *books) {
			b.journal.write(record{event: evPut, id: b.put(t)})
			b.ack(t, b.claim(t))
		}, "2 puts got this id"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			c.spoil(t, b)
			acc := b.audit(t, audit{drained: true})
			if acc.OK() || !strings.Contains(strings.Join(acc.Failures, "\n"), c.says) {
				t.Errorf("want %q in %+v", c.says, acc)
			}
		})
	}
}

func TestAKilledProcessExplainsWhatItHadNoTimeToWriteDown(t *testing.T) {
	b := newBooks(t)
	if _, err := b.q.Put(context.Background(), nil); err != nil { // put by a process killed before it could say so
		t.Fatal(err)
	}
	b.ack(t, b.claim(t))
	b.put(t)
	if err := b.claim(t).Ack(context.Background()); err != nil { // acked by one killed before it could say so
		t.Fatal(err)
	}
	acc := b.audit(t, audit{drained: true, kills: 1})
	if !acc.OK() || acc.Unanswered != 1 || acc.Unrecorded != 1 {
		t.Errorf("%+v", acc)
	}
}

func TestHalfARecordAtTheEndOfAJournalIsLeftOut(t *testing.T) {
	b := newBooks(t)
	b.put(t)
	b.ack(t, b.claim(t))
	if _, err := b.journal.file.Write(make([]byte, recordSize/2)); err != nil {
		t.Fatal(err)
	}
	if acc := b.audit(t, audit{drained: true}); !acc.OK() || acc.Acks != 1 {
		t.Errorf("%+v", acc)
	}
}
