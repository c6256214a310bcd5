package queue

import "github.com/localqueue/localqueue/db/sqlite"

// op is one operation of a caller, run in a transaction with those of others.
type op struct {
	sync   syncing
	urgent bool // settles and heartbeats: a lease may be ending meanwhile
	alone  bool // its transaction is its own: a caller's function, or one that may fail after it has changed something
	rows   int  // about how many rows it touches

	// run does it. It sets its results anew each time: after a rollback it may run again, in a transaction of its own.
	// Its own failure, unless alone, leaves no change behind.
	run func(*txn) error

	// What may be done together with others of its kind, in one statement; nil: nothing.
	put   *putOp
	ack   *ackOp
	claim *claimOp
}

type putOp struct {
	q    *Queue
	spec *putSpec
	res  *PutResult
}

type ackOp struct {
	q   *Queue
	ref Ref
}

type claimOp struct {
	q    *Queue
	n    int
	jobs *[]*Job
}

// txn is one transaction on the writer, or on a connection of the caller's.
type txn struct {
	s     *Store
	q     *sqlite.Queries
	now   int64 // Unix milliseconds, read under the write lock
	rings []ring
	buf   [2]ring
	look  bool // the next thing to fall due may be another: the watcher must look, after the commit as the rings
}

// ring wakes n waiters once the transaction is in the file.
type ring struct {
	key bellKey
	n   int
}

func (t *txn) ring(kind bellKind, queue string, n int) {
	if n <= 0 {
		return
	}
	key := bellKey{kind, queue}
	for i := range t.rings {
		if t.rings[i].key == key {
			t.rings[i].n += n
			return
		}
	}
	t.rings = append(t.rings, ring{key, n})
}
