package queue_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// until calls again until it returns an error, and returns that.
func untilError(t testing.TB, call func() error) error {
	t.Helper()
	deadline := time.After(patience)
	for {
		if err := call(); err != nil {
			return err
		}
		select {
		case <-deadline:
			t.Fatal("no error comes")
		case <-time.After(time.Millisecond):
		}
	}
}

// lostFiles take the file of a queue away.
var lostFiles = map[string]func(t *testing.T, path string){
	"removed":  func(t *testing.T, path string) { ok(t, os.Remove(path)) },
	"replaced": func(t *testing.T, path string) { ok(t, os.Rename(closedQueue(t, t.TempDir()), path)) },
	"directory": func(t *testing.T, path string) {
		ok(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".old"))
	},
}

var replacedCases = []fileCase{
	{"Rule41_AFileThatIsRemovedOrReplacedIsNoticedByEveryCommit", func(t *testing.T) {
		for _, lose := range lostFiles {
			for _, op := range []struct {
				name string
				run  func(q *queue.Queue, j *queue.Job) error
			}{
				{"put", func(q *queue.Queue, _ *queue.Job) error { return second(q.Put(context.Background(), nil)) }},
				{"extend", func(_ *queue.Queue, j *queue.Job) error { return second(j.Extend(context.Background(), time.Minute)) }},
				{"pause", func(q *queue.Queue, _ *queue.Job) error { return q.Pause(context.Background()) }},
			} {
				dir := filepath.Join(t.TempDir(), "q")
				s := openStore(t, dir)
				q := s.Default()
				_, err := q.Put(t.Context(), []byte("x"))
				ok(t, err)
				j, err := q.TryGet(t.Context())
				ok(t, err)
				lose(t, filepath.Join(dir, "localqueue.db"))
				err = untilError(t, func() error { return op.run(q, j) })
				matches(t, err, queue.ErrReplaced)
				contains(t, err, "localqueue.db")
			}
		}
	}},
	{"Rule41_AReceiverThatWaitsNoticesTooInsteadOfWaitingForEver", func(t *testing.T) {
		for _, lose := range lostFiles {
			dir := filepath.Join(t.TempDir(), "q")
			s := openStore(t, dir)
			get := inBackground(func() (*queue.Job, error) {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				return s.Default().Get(ctx)
			})
			for queue.Waiting(s) == 0 {
				<-time.After(time.Millisecond)
			}
			lose(t, filepath.Join(dir, "localqueue.db"))
			matches(t, second(get.await(t)), queue.ErrReplaced)
		}
	}},
	{"Rule41_APutThatWaitsForRoomNoticesToo", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "q")
		s := openStore(t, dir, queue.WithMaxPending(1))
		ok(t, second(s.Default().Put(t.Context(), nil)))
		put := inBackground(func() (queue.PutResult, error) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			return s.Default().Put(ctx, nil)
		})
		for queue.Waiting(s) == 0 {
			<-time.After(time.Millisecond)
		}
		ok(t, os.Remove(filepath.Join(dir, "localqueue.db")))
		matches(t, second(put.await(t)), queue.ErrReplaced)
	}},
	{"Rule42_WorkResumesWhenTheFileIsBack", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		works(t, s)
		path := filepath.Join(dir, "localqueue.db")
		ok(t, os.Rename(path, path+".away"))
		matches(t, untilError(t, func() error { return second(s.Default().Put(context.Background(), []byte("between"))) }), queue.ErrReplaced)
		ok(t, os.Rename(path+".away", path))
		deadline := time.Now().Add(patience)
		for second(s.Default().Put(t.Context(), []byte("x"))) != nil && time.Now().Before(deadline) {
			<-time.After(time.Millisecond)
		}
		ok(t, second(s.Default().Put(t.Context(), []byte("y"))))
		found, err := s.Check(t.Context(), false)
		ok(t, err)
		same(t, "findings", 0, len(found))
	}},
	{"Rule41_ANewStoreOpensTheNewFile", func(t *testing.T) {
		dir := t.TempDir()
		old := openStore(t, dir)
		works(t, old)
		path := filepath.Join(dir, "localqueue.db")
		ok(t, os.Remove(path))
		_ = os.Remove(path + "-wal")
		_ = os.Remove(path + "-shm")
		works(t, openStore(t, dir))
		matches(t, untilError(t, func() error { return second(old.Default().Put(context.Background(), nil)) }), queue.ErrReplaced)
	}},
}
