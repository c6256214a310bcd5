//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const roleBackup = "backup" // copies the queue, and looks at the copies

func init() {
	roles[roleBackup] = func(ctx context.Context, p *player) error { return p.together(ctx, 1, backUp) }
}

// backUp puts a job, copies the queue, and finds the job in the copy. A copy that a killed process has left under its own name
// is a whole one, whatever that process was at.
func backUp(ctx context.Context, p *player) error {
	dest := filepath.Join(filepath.Dir(p.Dir), "backups", "copy")
	if _, err := os.Stat(dest); err == nil {
		if err := errors.Join(p.lookAtCopy(dest, ""), os.RemoveAll(dest)); err != nil {
			return err
		}
	}
	j := job{Token: p.token()}
	put := entry{Op: opPut, Queue: typed, Jobs: []job{j}}
	if err := p.tell(put, func() ([]job, error) {
		res, err := p.put(context.Background(), typed, j.Token, []queue.PutOption{queue.Delay(time.Hour / 2)}) // until it is drained
		return []job{{ID: res.ID}}, err
	}); err != nil {
		return err
	}
	if _, err := p.store.Backup(context.Background(), dest, queue.BackupOptions{}); err != nil {
		return err
	}
	p.pause(ctx, 20*time.Millisecond)
	return errors.Join(p.lookAtCopy(dest, j.Token), os.RemoveAll(dest))
}

// lookAtCopy opens a copy and looks for what is wrong with it. token is that of a job which must be in it.
func (p *player) lookAtCopy(dest, token string) (err error) {
	s, err := queue.Open(dest, queue.MustExist())
	if err != nil {
		return fmt.Errorf("the copy can't be opened: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found, err := s.Check(context.Background(), false)
	if err == nil && len(found) > 0 {
		err = p.note("the copy has findings: %v", found)
	}
	if err != nil || token == "" {
		return err
	}
	q, err := s.Queue(typed)
	if err != nil {
		return err
	}
	for _, state := range states {
		for r, err := range q.All(context.Background(), state) {
			if err != nil || tokenOf(r.Payload) == token {
				return err
			}
		}
	}
	return p.note("the copy lacks the job %s, which was put before it was begun", token)
}

// lastBackup makes a backup to where processes have been killed in theirs: it removes what they have left.
func (c *crew) lastBackup() {
	t, dir := c.t, filepath.Join(filepath.Dir(c.dir), "backups")
	t.Helper()
	dest := filepath.Join(dir, "copy")
	s, err := queue.Open(c.dir)
	if err == nil {
		_, failed := s.Backup(t.Context(), dest, queue.BackupOptions{})
		if errors.Is(failed, queue.ErrExists) { // the copy of one that was killed when it was done
			failed = os.RemoveAll(dest)
		}
		err = errors.Join(failed, s.Close())
	}
	if err != nil {
		t.Errorf("the backup after the round: %v", err)
	}
	left, err := filepath.Glob(dest + ".*")
	if err != nil || len(left) > 0 {
		t.Errorf("killed backups have left %v, %v", left, err)
	}
}

// states are all those of a job.
var states = []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed}
