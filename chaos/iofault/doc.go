// Package iofault tries every operation of the queue on files and disks that fail: full, read-only, damaged, removed,
// another program's, or failing at one write or sync out of many. It holds tests only.
//
// Each attempt is one operation in a process of its own (child_test.go), on a copy of one directory (bed_test.go). The test
// lets the fault come, and afterwards asks the file, from a healthy process, whether the operation's answer was true
// (attempt_test.go): an error means that nothing was stored, success that all of it was, ErrOutcomeUnknown one of the two.
//
// go test runs every operation with a sample of the faults; make iofaults runs all of them.
package iofault
