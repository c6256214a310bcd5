package doctor

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"

	"github.com/localqueue/localqueue/queue"
)

const (
	mb = 1 << 20

	leastFree     = 64 * mb // a free disk below this is as good as full
	muchFreePages = 64 * mb // free pages below this aren't worth a vacuum
)

type findings []Finding

func (f *findings) add(severity Severity, code Code, text, advice string) {
	*f = append(*f, Finding{Severity: severity, Code: code, Text: text, Advice: advice})
}

// judgeAccess: what keeps the file from being used at all.
func judgeAccess(f *queue.Facts, found *findings) {
	if f.Err != nil {
		found.refuse(f.Err)
	}
	switch err := f.WriteErr; {
	case err == nil:
	case errors.Is(err, queue.ErrBusy):
		who := "a process"
		if f.Holder > 0 {
			who = fmt.Sprintf("process %d", f.Holder)
		}
		found.add(Problem, Busy, who+" held the write lock all the time: nobody can put, claim or settle", "see what it does; end it if it is stuck")
	case !errors.Is(f.Err, queue.ErrReadOnly): // else that is said
		found.refuse(err)
	}
	if f.Restoring {
		who := "a process"
		if pids := openIn(f); len(pids) > 0 {
			who = processes(pids)
		}
		found.add(Problem, Restoring, who+" kept the queue closed for a restore all the time: nobody can put, claim or settle",
			"let the restore end; continue it if it is stopped, or end it: what is there stays as it is then")
	}
	if f.Err != nil {
		return
	}
	if f.Schema < f.NewestSchema {
		found.add(Problem, OldSchema, fmt.Sprintf("the schema is version %d, this program's is %d: its queues can't be examined", f.Schema, f.NewestSchema),
			"migrate it (localqueue migrate up, or any opening), after a backup if you need the old program again")
	}
	if f.Journal != "wal" {
		found.add(Problem, JournalMode, fmt.Sprintf("the journal mode is %q, not \"wal\": readers and writers block each other", f.Journal), "open it with localqueue once, which switches it")
	}
}

// openIn are the processes that have the queue open, or keep it closed.
func openIn(f *queue.Facts) (pids []int) {
	for _, o := range f.Openers {
		pids = append(pids, o.PID)
	}
	return pids
}

// refuse tells of an error that Open or a write would return.
func (f *findings) refuse(err error) {
	for _, r := range []struct {
		is     error
		code   Code
		advice string
	}{
		{queue.ErrCorrupt, Corrupt, "stop what uses it, copy the directory, and restore a backup; check tells what is damaged"},
		{queue.ErrForeignFile, ForeignFile, "name another directory"},
		{queue.ErrNewerSchema, NewerSchema, "use the version of the program that wrote it, or a newer one"},
		{queue.ErrBusy, Busy, "end or continue the process that holds it"},
		{syscall.EROFS, ReadOnly, "mount its file system for writing, or copy the directory to one that is: looking needs the right to write, too"},
		{queue.ErrReadOnly, ReadOnly, "give this user the right to write to the directory and its files, or run as their owner"},
		{queue.ErrDiskFull, DiskFull, "free some space"},
		{err, Unreadable, "look at the disk and at the system's log"},
	} {
		if errors.Is(err, r.is) {
			f.add(Problem, r.code, text(err), r.advice)
			return
		}
	}
}

// judgeSync: what was read back from a connection must be what the durability asks for.
func judgeSync(f *queue.Facts, found *findings) {
	if f.SyncedLevel != "" && f.SyncedLevel != "full" && f.Durability != queue.Normal {
		found.add(Problem, SyncLevel, fmt.Sprintf("the durability is %s, but synchronous is %q at the commits it syncs: a power cut takes the last ones", f.Durability, f.SyncedLevel), "this build doesn't keep its promise: use another")
	}
}

// judgeFile: the file, the WAL and the disk they are on.
func judgeFile(f *queue.Facts, found *findings) {
	switch {
	case f.Network:
		found.add(Problem, NetworkFS, fmt.Sprintf("the directory is on %s, where SQLite's locks don't hold between machines", f.FileSystem), "move it to a local disk, while nothing uses it")
	case f.FileSystem == "tmpfs" || f.FileSystem == "ramfs":
		found.add(Note, MemoryFS, fmt.Sprintf("the directory is on %s: its jobs are gone when the machine restarts", f.FileSystem), "use a disk, unless that is what you want")
	}
	switch {
	case f.FreeBytes < leastFree:
		found.add(Problem, DiskFull, fmt.Sprintf("only %s are free on its disk", size(f.FreeBytes)), "free some space: puts fail when there is none, and acks with them")
	case f.FreeBytes < f.FileBytes:
		found.add(Note, DiskSmall, fmt.Sprintf("%s are free on its disk, less than the file has", size(f.FreeBytes)), "a vacuum needs more, and so does a backup to this disk")
	}
	if f.WALOver() {
		pending := (f.WALFrames - f.WALCopied) * f.PageSize
		switch wal := size(f.WALBytes); {
		case len(f.Readers) > 0:
			found.add(Problem, WALPinned, fmt.Sprintf("the WAL has %s and grows: %s read%s all the time, and %s can't be copied into the file before that ends",
				wal, processes(f.Readers), plural(len(f.Readers), "s", ""), size(pending)), "end that transaction, or the process; the WAL starts anew by itself then")
		default:
			found.add(Note, WALLarge, fmt.Sprintf("the WAL has %s, of which %s aren't in the file yet", wal, size(pending)), "the next writer copies them; look again if it goes on growing")
		}
	}
	if free := f.FreePages * f.PageSize; free >= muchFreePages && f.FreePages > f.Pages/2 {
		found.add(Note, FreePages, fmt.Sprintf("%s of the file's %s are free, left by removed jobs", size(free), size(f.FileBytes)), "new jobs use them; vacuum gives them back to the disk")
	}
	if f.Analyzed {
		found.add(Note, Analyzed, "somebody ran ANALYZE, whose figures can make claims and settles slow", "don't run it here; the next opening drops the figures")
	}
}

// judgeStores: Stores of one process in one directory compete, and share no commits. A stopped process does nothing, and what
// it holds nobody else gets.
func judgeStores(f *queue.Facts, found *findings) {
	var twice []string
	for _, o := range f.Openers {
		if o.Stopped {
			severity, text := Note, fmt.Sprintf("process %d has the queue open, but is stopped: what it has claimed comes back when the leases end", o.PID)
			if o.PID == f.Holder || f.Restoring {
				severity, text = Problem, fmt.Sprintf("process %d is stopped, and all others wait for it", o.PID)
			}
			found.add(severity, StoppedProcess, text, fmt.Sprintf("continue it (kill -CONT %d, or fg in its shell), or end it", o.PID))
		}
		if o.Stores > 1 {
			twice = append(twice, fmt.Sprintf("process %d has %d", o.PID, o.Stores))
		}
	}
	if len(twice) > 0 {
		found.add(Note, DuplicateStores, "there are several Stores in one process: "+list(twice), "share one Store in a process: its callers then share their commits")
	}
}

// text is an error on one line.
func text(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// most is how many names a sentence lists.
const most = 5

func list(parts []string) string {
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func processes(pids []int) string {
	var names []string
	for _, pid := range pids {
		names = append(names, fmt.Sprint(pid))
	}
	return "process" + plural(len(pids), "", "es") + " " + list(names)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func size(bytes int64) string { return humanize.IBytes(uint64(max(0, bytes))) }
