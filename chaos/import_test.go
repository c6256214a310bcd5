//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/localqueue/localqueue/queue"
)

const roleImport = "import" // imports that go on where a killed process left them

func init() {
	roles[roleImport] = func(ctx context.Context, p *player) error { return p.together(ctx, 1, bringIn) }
}

const (
	importBatches = 6
	importBatch   = 8
)

// bringIn does the import whose time it is, from where the file says that others have come. Processes that are at the same one
// get into each other's way: that is told as ErrImportMoved, and changes nothing.
func bringIn(ctx context.Context, p *player) error {
	name := fmt.Sprint("import-", time.Now().UnixMilli()/200)
	im, err := p.store.BeginImport(ctx, queue.ImportOptions{Name: name})
	if err != nil {
		return unlessOver(ctx, err)
	}
	for lines := im.Mark().Lines; ctx.Err() == nil && lines < importBatches*importBatch; lines += importBatch {
		e := entry{Op: opImport, Queue: bare}
		for i := range int64(importBatch) {
			token := fmt.Sprintf("%s-%d", name, lines+i)
			e.Jobs = append(e.Jobs, job{Token: token})
			if _, err := im.Add(queue.Archived{Record: queue.Record{Queue: bare, Payload: []byte(token)}}); err != nil {
				return err
			}
		}
		moved := false
		err := p.tell(e, func() ([]job, error) {
			_, err := im.Commit(context.Background(), queue.Mark{Lines: lines + importBatch, Digest: fmt.Sprint(lines)})
			if moved = errors.Is(err, queue.ErrImportMoved); moved {
				err = context.Canceled // as good as not called
			}
			return nil, err
		})
		if err != nil || moved {
			return err
		}
		p.pause(ctx, 3*p.Pace)
	}
	p.pause(ctx, 20*time.Millisecond)
	return nil
}
