package generics

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/localqueue/localqueue/queue"
)

// Queue is a named queue of T. Several Queues, also of different types, can stand on one [queue.Store]; give each type a
// name of its own. All methods may be called from several goroutines at once.
type Queue[T any] struct {
	raw   *queue.Queue
	codec Codec[T]
	owned *queue.Store // nil if Close leaves the Store open
}

// Open opens the Store in a directory, making both if need be, and on it the queue named by [queue.WithQueue] (default
// "default"). [Queue.Close] closes the Store.
func Open[T any](dir string, opts ...queue.Option) (*Queue[T], error) {
	store, err := queue.Open(dir, opts...)
	if err != nil {
		return nil, err
	}
	return &Queue[T]{raw: store.Default(), codec: JSON[T](), owned: store}, nil
}

// On makes a queue of T on a Store that stays the caller's to close. Options are those of a queue; what isn't given is
// as for the Store.
func On[T any](store *queue.Store, name string, opts ...queue.Option) (*Queue[T], error) {
	raw, err := store.Queue(name, opts...)
	if err != nil {
		return nil, err
	}
	return &Queue[T]{raw: raw, codec: JSON[T]()}, nil
}

// With returns the same queue with another codec; nil stands for [JSON]. The file doesn't record the codec: every
// program on this queue must use one that fits.
func (q *Queue[T]) With(codec Codec[T]) *Queue[T] {
	if codec == nil {
		codec = JSON[T]()
	}
	return &Queue[T]{raw: q.raw, codec: codec, owned: q.owned}
}

// Raw returns the queue of bytes beneath, for everything that needs no type.
func (q *Queue[T]) Raw() *queue.Queue { return q.raw }

// Close closes the Store of a queue made by [Open]: waiting calls return ErrClosed, jobs in hand stay leased until their
// lease ends. For a queue made by [On] it does nothing. It may be called again.
func (q *Queue[T]) Close() error {
	if q.owned == nil {
		return nil
	}
	return q.owned.Close()
}

// Stats counts the queue's jobs by state. See [queue.Queue.Stats].
func (q *Queue[T]) Stats(ctx context.Context) (queue.Stats, error) { return q.raw.Stats(ctx) }

// decode turns a codec's error or panic into a DecodeError.
func (q *Queue[T]) decode(id int64, payload []byte) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			// Not the panic's text: it may quote the payload.
			err = fmt.Errorf("the codec panicked with a %T", p)
		}
		if err != nil {
			err = &DecodeError{Queue: q.raw.Name(), ID: id, Err: err}
		}
	}()
	return q.codec.Decode(payload)
}

// encode turns a codec's error or panic into an error that matches queue.ErrInvalid.
func (q *Queue[T]) encode(value T) (payload []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
		if err != nil {
			err = fmt.Errorf("%w: a %T for queue %q can't be encoded: %w", queue.ErrInvalid, value, q.raw.Name(), err)
		}
	}()
	return q.codec.Encode(value)
}

// FailedJob is a job in the dead letters. If its payload can't be decoded, DecodeErr says why, Data is the zero value,
// and Payload has the bytes.
type FailedJob[T any] struct {
	queue.Record
	Data      T
	DecodeErr error // a *DecodeError, or nil
}

// FailedPage is one page of the dead letters. Next is the cursor of the next page, "" on the last one.
type FailedPage[T any] struct {
	Jobs []FailedJob[T]
	Next string
}

// ListFailed reads a page of the dead letters, by id. One bad record never hides the others.
func (q *Queue[T]) ListFailed(ctx context.Context, opts queue.ListOptions) (FailedPage[T], error) {
	page, err := q.raw.ListFailed(ctx, opts)
	if err != nil {
		return FailedPage[T]{}, err
	}
	failed := FailedPage[T]{Next: page.Next, Jobs: make([]FailedJob[T], 0, len(page.Records))}
	for _, r := range page.Records {
		data, err := q.decode(r.ID, r.Payload)
		failed.Jobs = append(failed.Jobs, FailedJob[T]{Record: r, Data: data, DecodeErr: err})
	}
	return failed, nil
}

// lost reports whether err means that a receipt no longer holds its job.
func lost(err error) bool { return errors.Is(err, queue.ErrLeaseLost) }
