package main

import "runtime/debug"

const (
	mattnDriver   = "mattn/go-sqlite3"
	moderncDriver = "modernc.org/sqlite"
)

// moduleVersion is the version that is linked in, from the build's own record.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return "unknown"
}
