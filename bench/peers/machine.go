package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// machine is what the figures depend on most.
type machine struct {
	CPU   string  `json:"cpu"`
	Cores int     `json:"cores"`
	OS    string  `json:"os"`
	Go    string  `json:"go"`
	Load  string  `json:"load"`               // the load average of the minute before, where Linux tells it
	Sync  float64 `json:"fsync_microseconds"` // the median of a sync after a write of 4 KiB, on the disk that is used
}

func (m machine) String() string {
	load := ""
	if m.Load != "" {
		load = ", load " + m.Load + " before"
	}
	return fmt.Sprintf("%d × %s, %s, %s, fsync %s µs%s", m.Cores, m.CPU, m.OS, m.Go, number(m.Sync), load)
}

func lookAround(dir string) (machine, error) {
	m := machine{CPU: cpuName(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(text), " ")
	}
	took, err := syncTime(dir)
	m.Sync = took
	return m, err
}

// cpuName is the processor's own name where Linux tells it.
func cpuName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return "processor"
}

func syncTime(dir string) (microseconds float64, err error) {
	path := filepath.Join(dir, "fsync.probe")
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(path) }()
	page, times := make([]byte, 4096), make([]float64, 0, 200)
	for range cap(times) {
		if _, err = file.Write(page); err != nil {
			break
		}
		started := time.Now()
		if err = file.Sync(); err != nil {
			break
		}
		times = append(times, float64(time.Since(started).Nanoseconds())/1000)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	slices.Sort(times)
	return median(times), err
}
