//go:build unix

package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

// Machine says where the figures were taken and of what.
type Machine struct {
	CPU        string `json:"cpu"`
	CPUs       int    `json:"cpus"`
	System     string `json:"system"` // and its kernel
	FileSystem string `json:"file_system"`
	Go         string `json:"go"`
	SQLite     string `json:"sqlite"`
	Commit     string `json:"commit"` // of this program; "" if it was built without
}

func machine(dir string) Machine {
	m := Machine{CPU: cpuModel(), CPUs: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, FileSystem: fileSystem(dir),
		Go: runtime.Version(), SQLite: queue.SQLiteVersion()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.System += " " + unix.ByteSliceToString(u.Release[:])
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		dirty := false
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				m.Commit = s.Value
			case "vcs.modified":
				dirty = s.Value == "true"
			}
		}
		if dirty && m.Commit != "" {
			m.Commit += " with changes"
		}
	}
	return m
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo") // there on Linux
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// fileSystem is the kind that a directory is on, as the system's list of mounts names it; "unknown" where there is none.
func fileSystem(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "unknown"
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	b, _ := os.ReadFile("/proc/self/mountinfo") // there on Linux
	found, kind := "", "unknown"
	for line := range strings.Lines(string(b)) {
		left, right, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(left), strings.Fields(right)
		if !ok || len(fields) < 5 || len(types) < 1 {
			continue
		}
		at := strings.ReplaceAll(fields[4], `\040`, " ")
		inside := at == "/" || dir == at || strings.HasPrefix(dir, at+"/")
		if inside && len(at) >= len(found) { // a later mount covers an earlier one
			found, kind = at, types[0]
		}
	}
	return kind
}
