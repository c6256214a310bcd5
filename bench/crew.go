//go:build unix

package bench

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// crew is the processes of one run.
type crew struct {
	start   func(*exec.Cmd) error
	command []string
	members []*member
}

// readyWait bounds the time until a process has opened the file; lag is from the word to the instant of the start.
const (
	readyWait = time.Minute
	lag       = 20 * time.Millisecond
)

// assemble starts a process for each task and waits until all of them are ready.
func (c *crew) assemble(ctx context.Context, tasks []task) error {
	for _, t := range tasks {
		m, err := launch(c.start, c.command, t)
		if err != nil {
			return err
		}
		c.members = append(c.members, m)
	}
	for _, m := range c.members {
		if err := m.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *member) awaitReady(ctx context.Context) error {
	timer := time.NewTimer(readyWait)
	defer timer.Stop()
	select {
	case <-m.ready:
		return nil
	case <-m.done:
		return m.err
	case <-timer.C:
		return &ProcessError{Role: m.task.Role, Text: fmt.Sprintf("it isn't ready after %v", readyWait), Said: m.stderr.said()}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release lets them all begin at one instant, and returns it.
func (c *crew) release() (start int64, err error) {
	start = monotonic() + int64(lag)
	for _, m := range c.members {
		if err := m.write(fmt.Sprintf("go %d", start)); err != nil {
			return start, err
		}
	}
	return start, nil
}

// finish waits for all of them. The first that fails ends the others; so does limit, if it isn't 0.
func (c *crew) finish(ctx context.Context, limit time.Duration) error {
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	ended := make(chan error, len(c.members))
	for _, m := range c.members {
		go func() {
			<-m.done
			ended <- m.err
		}()
	}
	for range c.members {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
		case <-late:
			return fmt.Errorf("%w %v after their time; is the disk very slow?", errNotEnded, overtime)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// dismiss ends whoever is left, and waits until they are gone.
func (c *crew) dismiss() {
	for _, m := range c.members {
		select {
		case <-m.done:
		default:
			m.kill()
		}
	}
	for _, m := range c.members {
		<-m.done
	}
}
