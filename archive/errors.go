package archive

import (
	"errors"
	"fmt"
)

// The errors of this package, for [errors.Is], beside those of package queue.
var (
	// ErrLine: a line of the input is broken. [LineError] tells which.
	ErrLine = errors.New("broken line")
	// ErrTruncated: an export ends without its last line, or jobs are missing from it.
	ErrTruncated = errors.New("the export is not whole")
	// ErrUnnamed: the input has no header, and the import was given no name.
	ErrUnnamed = errors.New("the input is no export")
	// ErrVersion: the export is of a version that this program doesn't know.
	ErrVersion = errors.New("unknown version of the format")
	// ErrOtherInput: under this name other lines have been imported before.
	ErrOtherInput = errors.New("not the input that was imported before")
	// ErrSameSource: the export was made of the file that it would go into.
	ErrSameSource = errors.New("the export comes from this very queue")
	// ErrOtherSource: the unfinished file is of an export of another file.
	ErrOtherSource = errors.New("begun for another queue directory")
	// ErrNoSuchQueue: the queue to export has neither jobs nor settings.
	ErrNoSuchQueue = errors.New("no such queue")
	// ErrExists: the file of an export is there already, or is no file to write to.
	ErrExists = errors.New("already exists")
)

// LineError says which line of the input is broken, and why. It matches [ErrLine] and the reason.
type LineError struct {
	Line int64 // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap makes the error match [ErrLine] and the reason.
func (e *LineError) Unwrap() []error { return []error{ErrLine, e.Err} }
