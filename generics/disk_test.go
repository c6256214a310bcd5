package generics

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Files that go away under a running Worker.
var vanishings = map[string]func(t *testing.T, dir string) (back func()){
	"removed": func(t *testing.T, dir string) func() { return moveAway(t, filepath.Join(dir, "localqueue.db")) },
	"moved":   moveAway,
	"replaced by another queue's": func(t *testing.T, dir string) func() {
		other := t.TempDir()
		q, err := Open[int](other)
		if err == nil {
			err = q.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		back := moveAway(t, filepath.Join(dir, "localqueue.db"))
		if err := os.Rename(filepath.Join(other, "localqueue.db"), filepath.Join(dir, "localqueue.db")); err != nil {
			t.Fatal(err)
		}
		return back
	},
	"replaced by a text": func(t *testing.T, dir string) func() {
		back := moveAway(t, filepath.Join(dir, "localqueue.db"))
		if err := os.WriteFile(filepath.Join(dir, "localqueue.db"), []byte("no database"), 0o600); err != nil {
			t.Fatal(err)
		}
		return back
	},
}

func moveAway(t *testing.T, path string) (back func()) {
	t.Helper()
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAWorkerWhoseFileGoesAwaySaysSoOnceAndWorksOnWhenItIsBack(t *testing.T) {
	for name, vanish := range vanishings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, log := filepath.Join(t.TempDir(), "q"), newLogbook()
			q := openDir[int](t, dir)
			worked := make(chan int, 10)
			begin := time.Now()
			stop := start(t, NewWorker(q, func(_ context.Context, j *Job[int]) error { worked <- j.Data; return nil }, Logger(slog.New(log))))
			put(t, q, 1)
			receive(t, worked)
			eventually(t, "the first job is acked", func() bool { return stats(t, q).Acked == 1 })

			back := vanish(t, dir)
			if err := receiveFault(t, log); !errors.Is(err, queue.ErrReplaced) {
				t.Errorf("the Worker tells %v, want ErrReplaced", err)
			}
			for range 20 { // while the Worker's own attempts go on
				if _, err := q.Put(background(t), 2); !errors.Is(err, queue.ErrReplaced) {
					t.Errorf("a put meanwhile: %v", err)
				}
			}
			back()
			eventually(t, "a put is taken again", func() bool {
				_, err := q.Put(background(t), 3)
				return err == nil
			})
			if n := receive(t, worked); n != 3 {
				t.Errorf("job %d was worked on, want the one after the fault", n)
			}
			if err := stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
			if more, most := furtherFaults(log), int(time.Since(begin)/newFaults(nil).period); more > most {
				t.Errorf("%d more lines, want %d at most", more, most)
			}
		})
	}
}

// receiveFault waits for a line that tells a fault, and returns the error in it.
func receiveFault(t *testing.T, log *logbook) (fault error) {
	t.Helper()
	for {
		l := receive(t, log.lines)
		if l.Level < slog.LevelError {
			continue
		}
		l.Attrs(func(a slog.Attr) bool {
			if err, ok := a.Value.Any().(error); ok {
				fault = err
			}
			return true
		})
		return fault
	}
}

// furtherFaults counts the faults that were logged since, by a Worker that has ended.
func furtherFaults(log *logbook) (n int) {
	for len(log.lines) > 0 {
		if l := <-log.lines; l.Level >= slog.LevelError {
			n++
		}
	}
	return n
}
