//go:build unix

package main

import (
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/localqueue/localqueue/bench"
)

// benchProgress is the line on the user's terminal that says what is being measured.
type benchProgress struct {
	app  *app
	bar  *progressbar.ProgressBar
	stop chan struct{}
	done sync.WaitGroup
}

func (p *benchProgress) show(now bench.Progress) {
	if !p.app.errTerminal {
		return
	}
	if p.bar == nil {
		p.start(now)
	}
	p.bar.Describe(now.Name)
	_ = p.bar.Set(now.Run - 1) // stderr is the last resort
}

func (p *benchProgress) start(now bench.Progress) {
	p.bar = progressbar.NewOptions(now.Runs, progressbar.OptionSetWriter(p.app.err), progressbar.OptionShowCount(),
		progressbar.OptionSetDescription(now.Name), progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(true),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(20))
	p.stop = make(chan struct{})
	p.done.Go(func() { // a run can take a minute: the clock shows that it is alive
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = p.bar.RenderBlank()
			case <-p.stop:
				return
			}
		}
	})
}

func (p *benchProgress) finish() {
	if p.bar != nil {
		close(p.stop)
		p.done.Wait()
		_ = p.bar.Finish()
	}
}
