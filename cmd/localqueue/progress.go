//go:build unix

package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress counts jobs on the user's terminal. Elsewhere it is silent.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress shows progress if stderr is a terminal that nothing else writes to.
func newProgress(a *app, what string, free bool) *progress {
	if !a.errTerminal || !free {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(-1, progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSpinnerType(14), progressbar.OptionClearOnFinish())}
}

func (p *progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // stderr is the last resort
	}
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
