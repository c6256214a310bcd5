//go:build unix

package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type usage struct {
	cpu     time.Duration
	peakRSS int64 // bytes
}

// processUsage is what this process has used so far.
func processUsage() usage {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return usage{}
	}
	rss := int64(u.Maxrss)
	if runtime.GOOS != "darwin" { // which counts bytes; the others kilobytes
		rss *= 1024
	}
	if own := highWater(); own > 0 {
		rss = own
	}
	return usage{cpu: time.Duration(u.Utime.Nano() + u.Stime.Nano()), peakRSS: rss}
}

// highWater is this program's largest size on Linux, in bytes, where getrusage counts that of the program that started it
// too. 0 elsewhere.
func highWater() int64 {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb * 1024
		}
	}
	return 0
}
