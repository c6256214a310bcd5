package queue

import "time"

// stride is how many rows the next transaction of a long job takes. Rows differ: removing one with 10 MB of payload takes as
// long as removing thousands of small ones. It begins with one and aims at a time, so that others never wait long.
type stride struct{ rows int }

const (
	strideTime = 4 * time.Millisecond // of the statements; the commit comes on top
	maxStride  = stepRows
)

func newStride() *stride { return &stride{rows: 1} }

// timed runs one step's statements and sets the size of the next one.
func (s *stride) timed(step func() error) error {
	start := time.Now()
	err := step()
	took := max(time.Since(start), time.Microsecond)
	fits := int(int64(s.rows) * int64(strideTime) / int64(took))
	s.rows = max(1, min(fits, 4*s.rows, maxStride))
	return err
}
