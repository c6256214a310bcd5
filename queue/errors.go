package queue

import (
	"errors"
	"fmt"
)

// The errors of this package, for [errors.Is]. What is returned wraps one of them and tells what failed, on which queue
// and job, and what to do.
var (
	// ErrEmpty: no job is claimable now (TryGet, TryGetMany, Peek). Never said because of a lock.
	ErrEmpty = errors.New("no job is ready")
	// ErrFull: the put would exceed WithMaxPending.
	ErrFull = errors.New("the queue is full")
	// ErrLeaseLost: the receipt doesn't hold this job (any more). [LeaseLostError] tells the cause.
	ErrLeaseLost = errors.New("lease lost")
	// ErrCancelled: the job was cancelled. A lease lost by that matches both.
	ErrCancelled = errors.New("job cancelled")
	// ErrNotFound: no such job on this queue.
	ErrNotFound = errors.New("job not found")
	// ErrNotFailed: RetryFailed met a job that is not in the dead letters.
	ErrNotFailed = errors.New("job is not failed")
	// ErrNotDelayed: RunNow met a job that is not waiting for its time.
	ErrNotDelayed = errors.New("job is not delayed")
	// ErrFinished: Cancel met a job that has already been acked or has failed.
	ErrFinished = errors.New("job has finished")
	// ErrLeased: Delete met a job that a receiver holds.
	ErrLeased = errors.New("job is leased")
	// ErrDuplicate: RetryFailed met a key that another live job holds; [DuplicateError] names it.
	ErrDuplicate = errors.New("job_id is held by another job")
	// ErrBusy: another writer, or a restore, held the file for longer than the busy timeout. From Restore: the queue is open.
	ErrBusy = errors.New("the database is busy")
	// ErrClosed: the Store is closed.
	ErrClosed = errors.New("the store is closed")
	// ErrOutcomeUnknown: an I/O error came while the commit ran; the operation may have been stored. Put again with the
	// same job_id to be safe.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrForeignTx: the transaction handed in is not on this Store's file.
	ErrForeignTx = errors.New("the transaction is on another database")
	// ErrPayloadTooLarge: the payload exceeds WithMaxPayload.
	ErrPayloadTooLarge = errors.New("payload too large")
	// ErrImportMoved: the import, or the file it goes into, is not where this run of it believes it to be.
	ErrImportMoved = errors.New("the import has moved on elsewhere")
	// ErrImportQueue: jobs of this import that name no queue went to another one than it has now.
	ErrImportQueue = errors.New("not the queue that the import began with")
	// ErrInvalid: an argument or option is out of its range. Nothing was changed.
	ErrInvalid = errors.New("invalid argument")

	// ErrNoQueue: there is no queue in the directory (with MustExist).
	ErrNoQueue = errors.New("no queue")
	// ErrNotDirectory: the path is not a directory.
	ErrNotDirectory = errors.New("not a directory")
	// ErrInMemory: ":memory:" was given instead of a directory.
	ErrInMemory = errors.New("an in-memory database can't be shared")
	// ErrNetworkFS: the directory is on a network file system (see AllowNetworkFS).
	ErrNetworkFS = errors.New("network file system")
	// ErrForeignFile: the file is an SQLite database, but not a localqueue.
	ErrForeignFile = errors.New("not a localqueue database")
	// ErrNewerSchema: the file was written by a newer version.
	ErrNewerSchema = errors.New("the schema is newer than this program")
	// ErrOldSQLite: the linked SQLite can corrupt a file with several writers.
	ErrOldSQLite = errors.New("the linked SQLite is too old")
	// ErrCorrupt: the file is damaged, or not an SQLite database at all.
	ErrCorrupt = errors.New("the database file is corrupt or not a database")
	// ErrDiskFull: no room to write.
	ErrDiskFull = errors.New("the disk is full")
	// ErrReadOnly: the file or its directory can't be written.
	ErrReadOnly = errors.New("the database can't be written")
	// ErrIO: the system reported an error on reading or writing the file.
	ErrIO = errors.New("I/O error on the database")
	// ErrExists: Backup or Restore would write where something is already.
	ErrExists = errors.New("it exists already")
	// ErrUnclosed: Restore was given a queue with a WAL: it is open, or a crash has left it so.
	ErrUnclosed = errors.New("the queue was not closed")
	// ErrReplaced: the database file was removed or replaced while the Store was open, or it is missing beside its WAL.
	ErrReplaced = errors.New("the database file was removed or replaced")
)

// LossCause says why a receipt doesn't hold a job.
type LossCause string

const (
	LossExpired    LossCause = "expired"                // the lease ended before the call
	LossSuperseded LossCause = "superseded"             // the job has been delivered again since
	LossSettled    LossCause = "settled"                // this delivery was already acked, nacked, failed or released
	LossCancelled  LossCause = "cancelled"              // the job was cancelled
	LossGone       LossCause = "gone"                   // the job was removed
	LossNoSuchJob  LossCause = "no such job"            // the id was never given, or belongs to another queue
	LossForeign    LossCause = "receipt of another job" // the receipt is none of this job's
)

// LeaseLostError is what settling returns when the receipt doesn't hold the job. It matches [ErrLeaseLost]; with cause
// LossNoSuchJob also [ErrNotFound], with LossCancelled also [ErrCancelled]. The job's true owner is untouched.
type LeaseLostError struct {
	Queue string
	ID    int64
	Cause LossCause
}

func (e *LeaseLostError) Error() string {
	return fmt.Sprintf("lease lost on job %d of queue %q: %s", e.ID, e.Queue, e.Cause)
}

// Is makes the error match its sentinels.
func (e *LeaseLostError) Is(target error) bool {
	return target == ErrLeaseLost ||
		target == ErrNotFound && e.Cause == LossNoSuchJob ||
		target == ErrCancelled && e.Cause == LossCancelled
}

// DuplicateError is what RetryFailed returns when another live job holds the key by now. It matches [ErrDuplicate].
type DuplicateError struct {
	Queue  string
	ID     int64 // the job that was to be retried
	JobID  string
	Holder int64 // the job that holds the key
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("job %d of queue %q can't be retried: job_id %q is held by job %d; wait for it, cancel it or delete it", e.ID, e.Queue, e.JobID, e.Holder)
}

// Is makes the error match [ErrDuplicate].
func (e *DuplicateError) Is(target error) bool { return target == ErrDuplicate }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
