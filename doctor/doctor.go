// Package doctor looks at a queue's directory, says what is wrong or odd about it, and what to do about that. It changes
// nothing, and also speaks of a directory that queue.Open refuses.
package doctor

import (
	"context"
	"slices"

	"github.com/localqueue/localqueue/queue"
)

// Severity says whether a finding makes a queue unhealthy.
type Severity string

const (
	Problem Severity = "problem" // jobs don't run, are at risk, or others can read or change them
	Note    Severity = "note"    // worth knowing; may be as you want it
)

// Code names a kind of finding. Codes don't change from version to version.
type Code string

// What keeps the file from being used.
const (
	Unreadable  Code = "unreadable"   // the file can't be read; the text tells why
	Corrupt     Code = "corrupt"      // it is damaged, or no SQLite database
	ForeignFile Code = "foreign_file" // it is another program's database
	NewerSchema Code = "newer_schema" // a newer version has written it
	OldSchema   Code = "old_schema"   // it is to be migrated
	JournalMode Code = "journal_mode" // it isn't in WAL mode
	SyncLevel   Code = "sync_level"   // commits that the durability syncs aren't synced
	ReadOnly    Code = "read_only"    // this user can't write to it
	Busy        Code = "busy"         // another process kept it locked all the time
	Restoring   Code = "restoring"    // a restore kept the directory for itself all the time
)

// What makes work slow, or will.
const (
	NetworkFS       Code = "network_fs"
	MemoryFS        Code = "memory_fs"        // its disk is gone with a restart of the machine
	DiskFull        Code = "disk_full"        // hardly any room is left
	DiskSmall       Code = "disk_small"       // no room for a backup or a vacuum
	WALPinned       Code = "wal_pinned"       // a reader that goes on and on lets the WAL grow
	WALLarge        Code = "wal_large"        // nobody copies it into the file
	FreePages       Code = "free_pages"       // removed jobs left much room in the file
	Analyzed        Code = "analyzed"         // the figures of an ANALYZE mislead the queries
	DuplicateStores Code = "duplicate_stores" // one process has opened the directory more than once
	StoppedProcess  Code = "stopped_process"  // a process that has it open was stopped, and not continued
)

// What is odd about the directory and its files.
const (
	DirMode    Code = "dir_mode" // others can read or change it
	DirLink    Code = "dir_link"
	FileMode   Code = "file_mode"
	OddFile    Code = "odd_file"    // a link, or no plain file where one belongs
	HardLink   Code = "hard_link"   // the database has another name
	Owner      Code = "owner"       // it is another user's
	MixedOwner Code = "mixed_owner" // its files are those of several users
	Leftover   Code = "leftover"    // an unfinished backup
)

// What is odd about the jobs.
const (
	ExpiredLeases Code = "expired_leases" // since a moment; the next claim picks them up
	StuckLeases   Code = "stuck_leases"   // nothing has picked them up for a minute
	NobodyClaims  Code = "nobody_claims"  // jobs are due, and no one works
	Paused        Code = "paused"
	AckedGrown    Code = "acked_grown"
	FailedGrown   Code = "failed_grown"
	RetentionLate Code = "retention_late" // acked jobs are kept for longer than was set
	FutureStamps  Code = "future_stamps"  // a clock ran ahead
	FarLease      Code = "far_lease"
	FarDelay      Code = "far_delay"
)

// Finding is one thing to know about a queue.
type Finding struct {
	Severity Severity
	Code     Code
	Queue    string // "" if it concerns the directory or the file
	Text     string // what is the case, in a sentence
	Advice   string // what to do
}

// Report is what Examine has seen.
type Report struct {
	Facts    *queue.Facts
	Findings []Finding // problems first
}

// Problems counts the findings that are no mere notes.
func (r *Report) Problems() (n int) {
	for _, f := range r.Findings {
		if f.Severity == Problem {
			n++
		}
	}
	return n
}

// Healthy tells whether there is no problem; notes don't count.
func (r *Report) Healthy() bool { return r.Problems() == 0 }

// Examine looks at the queue in dir, as [queue.Inspect] does, and judges what it sees. The options are those of
// [queue.Open]. What is wrong with the queue is no error but a finding; errors are those of Inspect, ErrNoQueue above all.
func Examine(ctx context.Context, dir string, opts ...queue.Option) (*Report, error) {
	facts, err := queue.Inspect(ctx, dir, opts...)
	if err != nil {
		return nil, err
	}
	return &Report{Facts: facts, Findings: judge(facts)}, nil
}

func judge(f *queue.Facts) (found []Finding) {
	for _, look := range []func(*queue.Facts, *findings){judgeAccess, judgeSync, judgeFile, judgeDirectory, judgeStores, judgeClock} {
		look(f, (*findings)(&found))
	}
	for i := range f.Queues {
		judgeQueue(f, &f.Queues[i], (*findings)(&found))
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return rank(a) - rank(b) })
	return found
}

func rank(f Finding) int {
	if f.Severity == Problem {
		return 0
	}
	return 1
}
