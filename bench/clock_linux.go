package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// origin is one instant on two clocks: Go's monotonic one, which is cheap to read and starts with the process, and the
// system's, on which it is based.
var origin = func() (o struct {
	here   time.Time
	system int64
}) {
	var t unix.Timespec
	o.here = time.Now()
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // fails only for a clock that isn't there
	o.system = t.Nano()
	return o
}()

// monotonic is a clock that all processes of this machine share and nobody sets, in nanoseconds.
func monotonic() int64 { return origin.system + int64(time.Since(origin.here)) }
