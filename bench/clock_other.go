//go:build unix && !linux

package bench

import "time"

// monotonic is a clock that all processes of this machine share, in nanoseconds: where there is no better one, that of the
// wall, which somebody may set during a run.
func monotonic() int64 { return time.Now().UnixNano() }
