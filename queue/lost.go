package queue

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"github.com/localqueue/localqueue/db/sqlite"
)

// whyLost finds out, in the transaction whose settle changed nothing, why the receipt doesn't hold the job.
func (q *Queue) whyLost(t *txn, id int64, receipt string) error {
	cause, err := q.lossCause(t, id, receipt)
	if err != nil {
		return err
	}
	return &LeaseLostError{Queue: q.name, ID: id, Cause: cause}
}

func (q *Queue) lossCause(t *txn, id int64, receipt string) (LossCause, error) {
	ctx := context.Background()
	number := receiptNumber(receipt)
	row, err := t.q.WhyLost(ctx, sqlite.WhyLostParams{ID: id, Delivery: number})
	if errors.Is(err, sql.ErrNoRows) {
		last, err := t.q.LastID(ctx)
		if err != nil || id < 1 || id > last {
			return LossNoSuchJob, err
		}
		return LossGone, nil
	}
	if err != nil {
		return "", err
	}
	held := row.Status == statusLeased
	switch {
	case row.Queue != q.name:
		return LossNoSuchJob, nil
	case held && deref(row.Receipt) == receipt:
		return LossExpired, nil
	case number == 0 || number > row.Delivery || held && number == row.Delivery:
		return LossForeign, nil
	case number < row.Delivery:
		return LossSuperseded, nil
	}
	// What ended this delivery, not what became of the job since.
	switch deref(row.Outcome) {
	case string(Cancelled):
		return LossCancelled, nil
	case string(LeaseExpired):
		return LossExpired, nil
	}
	return LossSettled, nil
}

// receiptNumber is the delivery that a receipt is for; 0 if it has no receipt's form.
func receiptNumber(receipt string) int64 {
	number, random, ok := strings.Cut(receipt, "-")
	if !ok || len(random) != 32 {
		return 0
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 {
		return 0
	}
	return n
}
