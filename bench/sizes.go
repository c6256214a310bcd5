//go:build unix

package bench

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// sizes watches how large the WAL becomes: SQLite removes it when the last process closes the file.
type sizes struct {
	wal  int64
	stop chan struct{}
	done sync.WaitGroup
}

func (b *bed) watchSizes() *sizes {
	s := &sizes{stop: make(chan struct{})}
	s.done.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			s.wal = max(s.wal, fileSize(filepath.Join(b.dir, "localqueue.db-wal")))
			select {
			case <-tick.C:
			case <-s.stop:
				return
			}
		}
	})
	return s
}

func (s *sizes) end() int64 {
	close(s.stop)
	s.done.Wait()
	return s.wal
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0 // it comes and goes
	}
	return info.Size()
}
