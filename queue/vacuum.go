package queue

import (
	"context"
	"fmt"
)

// Vacuum rewrites the file without the space that removed jobs left, and empties the WAL. Other writers wait meanwhile;
// it takes about as much free disk as the file is large. ErrBusy: others kept the file busy for the busy timeout.
func (s *Store) Vacuum(ctx context.Context) error {
	err := s.exclusively(ctx, func(p *patience) error {
		err := retryBusy(ctx, p.left(), func() error {
			_, err := s.w.conn.ExecContext(context.Background(), "VACUUM")
			return err
		})
		if err != nil {
			return err
		}
		passing(inVacuum)
		// A reader may hold the WAL back; that is no failure of the vacuum.
		_, err = s.w.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
		if isBusy(err) {
			err = nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("vacuum of %s: %w", s.dir, storeError(s.path, err))
	}
	return nil
}
