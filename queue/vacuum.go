package queue

import (
	"context"
	"fmt"
	"time"
)

// Vacuum rewrites the file without the space that removed jobs left, and empties the WAL. Other writers wait meanwhile;
// it takes about as much free disk as the file is large. ErrBusy: others kept the file busy for the busy timeout.
func (s *Store) Vacuum(ctx context.Context) error {
	start := time.Now()
	if err := s.lead(ctx, start); err != nil {
		return fmt.Errorf("vacuum of %s: %w", s.dir, err)
	}
	defer func() { <-s.w.turn }()
	if err := s.file.check(); err != nil {
		return err
	}
	err := retryBusy(ctx, s.cfg.busy, func() error {
		_, err := s.w.conn.ExecContext(context.Background(), "VACUUM")
		return err
	})
	if err == nil {
		// A reader may hold the WAL back; that is no failure of the vacuum.
		_, err = s.w.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
		if isBusy(err) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("vacuum of %s: %w", s.dir, storeError(s.path, err))
	}
	return nil
}
