//go:build !linux

package doorbell

import (
	"errors"
	"os"
)

const slots = 1

// Without open-file-description locks there is no board: a Store then looks for news by polling.
type board struct{}

func openBoard(string) (*board, error)           { return &board{}, nil }
func (*board) close() error                      { return nil }
func (*board) take(int) bool                     { return false }
func (*board) yield(int)                         {}
func (*board) announce(Key, int) error           { return nil }
func (*board) retract(Key, int)                  {}
func (*board) sleepers(Key, int, int) []int      { return nil }
func (*board) openFIFO(string) (*os.File, error) { return nil, errors.ErrUnsupported }
func (*Bell) send(int, News) bool                { return false }
