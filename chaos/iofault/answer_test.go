package iofault

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-sqlite3"

	"github.com/localqueue/localqueue/queue"
)

// answer is what an operation in another process returned.
type answer struct {
	Key     string `json:",omitempty"` // of a call in a series: the job_id that it was to store
	Err     string
	Is      []string // the sentinels that it matches, by name
	Code    int      // SQLite's, extended; 0: not from the driver
	Errno   int      // the system's, where SQLite passes that on
	Unknown bool     // it matches ErrOutcomeUnknown
}

// sentinels are those that a fault of the file or the disk may be told as.
var sentinels = map[string]error{
	"ErrDiskFull": queue.ErrDiskFull, "ErrReadOnly": queue.ErrReadOnly, "ErrIO": queue.ErrIO, "ErrCorrupt": queue.ErrCorrupt,
	"ErrReplaced": queue.ErrReplaced, "ErrForeignFile": queue.ErrForeignFile, "ErrNewerSchema": queue.ErrNewerSchema,
	"ErrBusy": queue.ErrBusy, "ErrClosed": queue.ErrClosed, "ErrEmpty": queue.ErrEmpty, "ErrNoQueue": queue.ErrNoQueue,
	"errFound": errFound, "ErrNotFound": queue.ErrNotFound, "ErrLeaseLost": queue.ErrLeaseLost, "ErrOutcomeUnknown": queue.ErrOutcomeUnknown,
}

func answerOf(err error) answer {
	if err == nil {
		return answer{}
	}
	a := answer{Err: err.Error(), Unknown: errors.Is(err, queue.ErrOutcomeUnknown)}
	for name, is := range sentinels {
		if errors.Is(err, is) {
			a.Is = append(a.Is, name)
		}
	}
	slices.Sort(a.Is)
	if e := (sqlite3.Error{}); errors.As(err, &e) {
		a.Code, a.Errno = int(e.ExtendedCode), int(e.SystemErrno)
	}
	return a
}

func (a answer) is(name string) bool { return slices.Contains(a.Is, name) }

func (a answer) String() string {
	if a.Err == "" {
		return "success"
	}
	return fmt.Sprintf("%s (%s, SQLite %d, errno %d)", a.Err, strings.Join(a.Is, " "), a.Code, a.Errno)
}
