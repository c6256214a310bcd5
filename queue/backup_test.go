package queue_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/localqueue/localqueue/queue"
)

func init() {
	roles["put-batches"] = putBatches
}

// batchSize is how many jobs each batch of the load has. They are put in one transaction, and acked in one.
const batchSize = 10

// putBatches puts batches of jobs that carry the number of their batch, and acks the older ones, which removes them. It
// prints a line for each batch, until its stdin ends.
func putBatches() {
	ctx := context.Background()
	s, err := queue.Open(os.Getenv(dirEnv), queue.WithDurability(queue.Normal), queue.WithBusyTimeout(time.Minute))
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	var ended atomic.Bool
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		ended.Store(true)
	}()
	q, err := s.Queue(fmt.Sprint("batches of ", os.Getpid()))
	if err == nil {
		err = q.KeepAcked(ctx, 0)
	}
	for n := 1; err == nil && !ended.Load(); n++ {
		batch := make([]queue.NewJob, batchSize)
		for i := range batch {
			batch[i].Payload = fmt.Append(nil, n)
		}
		if _, err = q.PutMany(ctx, batch); err == nil && n > 5 {
			err = ackBatch(ctx, q)
		}
		fmt.Println("batch", n)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		fmt.Println("error:", err)
	}
}

func ackBatch(ctx context.Context, q *queue.Queue) error {
	jobs, err := q.GetMany(ctx, batchSize)
	if err != nil {
		return err
	}
	refs := make([]queue.Ref, len(jobs))
	for i, j := range jobs {
		refs[i] = j.Ref()
	}
	_, err = q.AckMany(ctx, refs)
	return err
}

// wholeBatches fails unless all jobs of each batch are there, or none, and returns how many batches there are.
func wholeBatches(t testing.TB, s *queue.Store) int {
	t.Helper()
	all, err := s.Queues(t.Context())
	ok(t, err)
	batches := map[string]int{}
	for _, stats := range all {
		if !strings.HasPrefix(stats.Queue, "batches") {
			continue
		}
		q, err := s.Queue(stats.Queue)
		ok(t, err)
		for _, state := range []queue.State{queue.Ready, queue.Leased} {
			for r, err := range q.All(t.Context(), state) {
				ok(t, err)
				batches[stats.Queue+" "+string(r.Payload)]++
			}
		}
	}
	for name, n := range batches {
		if n != batchSize {
			t.Errorf("%d jobs of batch %q are there; %d were put at once, and acked at once", n, name, batchSize)
		}
	}
	return len(batches)
}

// sound opens a directory as any process would, and examines it.
func sound(t testing.TB, dir string, opts ...queue.Option) *queue.Store {
	t.Helper()
	s := openStore(t, dir, append(opts, queue.MustExist())...)
	found, err := s.Check(t.Context(), false)
	ok(t, err)
	same(t, "findings", []queue.Finding(nil), found)
	return s
}

// drains takes all jobs of all queues.
func drains(t testing.TB, s *queue.Store) (jobs int) {
	t.Helper()
	all, err := s.Queues(t.Context())
	ok(t, err)
	for _, stats := range all {
		q, err := s.Queue(stats.Queue)
		ok(t, err)
		for {
			got, err := q.TryGetMany(t.Context(), 1000)
			if errors.Is(err, queue.ErrEmpty) {
				break
			}
			ok(t, err)
			for _, j := range got {
				ok(t, j.Ack(t.Context()))
			}
			jobs += len(got)
		}
		after, err := q.Stats(t.Context())
		ok(t, err)
		same(t, "left in "+stats.Queue, int64(0), after.Ready+after.Processing)
	}
	return jobs
}

// fillers make the file so large that a backup takes many steps.
const fillers = 800

func filledQueue(t testing.TB, dir string) *queue.Store {
	t.Helper()
	s := openStore(t, dir, queue.WithDurability(queue.Normal))
	jobs := make([]queue.NewJob, fillers)
	for i := range jobs {
		jobs[i].Payload = []byte(repeat("x", 5000+i))
	}
	ok(t, second(s.Default().PutMany(t.Context(), jobs)))
	return s
}

func TestABackupUnderLoadIsOneMomentOfTheQueue(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "q")
	s := filledQueue(t, dir)
	var writers []*atomic.Int64
	for range 3 {
		p := startAs(t, "put-batches", dirEnv+"="+dir)
		defer func() { ok(t, p.in.Close()) }()
		writers = append(writers, p.progress())
	}
	for n := range sized(3, 50) {
		for _, w := range writers {
			reaches(t, "a writer", w, 10)
		}
		dest := filepath.Join(base, fmt.Sprint("backup", n))
		last, steps := 0, 0
		var seen [3]int64
		ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
		info, err := s.Backup(ctx, dest, queue.BackupOptions{Progress: func(done, total int) {
			if done <= last || done > total {
				t.Errorf("%d of %d pages are copied, after %d: it has begun anew", done, total, last)
				cancel()
			}
			for i, w := range writers { // the others commit between any two steps
				for w.Load() == seen[i] && ctx.Err() == nil {
					time.Sleep(100 * time.Microsecond)
				}
				seen[i] = w.Load()
			}
			last, steps = done, steps+1
		}})
		cancel()
		ok(t, err)
		if steps < 4 {
			t.Fatalf("it took %d steps; this test needs more", steps)
		}
		same(t, "where", dest, info.Dir)
		copied := sound(t, dest, queue.WithClock(func() time.Time { return time.Now().Add(time.Hour) })) // leases have ended
		batches := wholeBatches(t, copied)
		if jobs := drains(t, copied); batches == 0 || jobs != fillers+batches*batchSize {
			t.Errorf("%d jobs come out of the backup, which has %d batches", jobs, batches)
		}
	}
	sound(t, dir)
}

func TestABackupIsOneFileForItsOwner(t *testing.T) {
	base := t.TempDir()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := openStore(t, filepath.Join(base, "q"), queue.WithClock(func() time.Time { return now }))
	ok(t, second(s.Default().Put(t.Context(), []byte("kept"))))
	dest := filepath.Join(base, "backup")
	info, err := s.Backup(t.Context(), dest, queue.BackupOptions{})
	ok(t, err)
	st, err := os.Stat(filepath.Join(dest, "localqueue.db"))
	ok(t, err)
	same(t, "info", queue.BackupInfo{Dir: dest, Bytes: st.Size(), At: now}, info)
	same(t, "mode of the file", os.FileMode(0o600), st.Mode())
	st, err = os.Stat(dest)
	ok(t, err)
	same(t, "mode of the directory", os.FileMode(0o700), st.Mode().Perm())
	same(t, "files", []string{"localqueue.db"}, names(t, dest))
	same(t, "beside it", []string{"backup", "q"}, names(t, base))

	ok(t, second(s.Default().Put(t.Context(), []byte("later"))))
	j, err := sound(t, dest).Default().TryGet(t.Context())
	ok(t, err)
	same(t, "payload", "kept", string(j.Payload))
}

func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestABackupWhosePlaceIsNoGoodIsRefused(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "q")
	s := openStore(t, dir)
	works(t, s)
	ok(t, os.Mkdir(filepath.Join(base, "empty"), 0o700))
	ok(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	ok(t, os.Symlink("nowhere", filepath.Join(base, "dangling")))
	ok(t, os.Symlink("q", filepath.Join(base, "link")))
	before := names(t, base)
	for _, c := range []struct {
		dest string
		want error
	}{
		{"", queue.ErrInvalid},
		{dir, queue.ErrExists},
		{filepath.Join(base, "empty"), queue.ErrExists},
		{filepath.Join(base, "file"), queue.ErrExists},
		{filepath.Join(base, "dangling"), queue.ErrExists},
		{filepath.Join(dir, "backup"), queue.ErrInvalid},
		{filepath.Join(base, "link", "backup"), queue.ErrInvalid},
		{filepath.Join(base, "no", "backup"), queue.ErrNotDirectory},
		{filepath.Join(base, "file", "backup"), queue.ErrNotDirectory},
	} {
		_, err := s.Backup(t.Context(), c.dest, queue.BackupOptions{})
		matches(t, err, c.want)
		contains(t, err, dir, c.dest)
	}
	same(t, "names", before, names(t, base))
	works(t, s)
}

func TestABackupThatEndsEarlyLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(cancel func(), s *queue.Store, dest string)
		want error
	}{
		"Cancelled": {func(cancel func(), _ *queue.Store, _ string) { cancel() }, context.Canceled},
		"Closed":    {func(_ func(), s *queue.Store, _ string) { _ = s.Close() }, queue.ErrClosed},
		"Overtaken": {func(_ func(), _ *queue.Store, dest string) { _ = os.Mkdir(dest, 0o700) }, queue.ErrExists},
		"Lost":      {func(_ func(), s *queue.Store, _ string) { _ = os.Rename(s.Dir(), s.Dir()+".away") }, queue.ErrReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dest := filepath.Join(base, "backup")
			s := filledQueue(t, filepath.Join(base, "q"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			calls := 0
			_, err := s.Backup(ctx, dest, queue.BackupOptions{Progress: func(int, int) {
				if calls++; calls == 1 {
					c.end(cancel, s, dest)
				}
			}})
			matches(t, err, c.want)
			if calls > 1 && errors.Is(c.want, context.Canceled) {
				t.Errorf("it went on for %d steps", calls-1)
			}
			left, err := filepath.Glob(dest + ".*")
			ok(t, err)
			same(t, "left", []string(nil), left)
			if !errors.Is(c.want, queue.ErrExists) {
				_, err = os.Lstat(dest)
				matches(t, err, os.ErrNotExist)
			}
		})
	}
}

func TestTheLeftoversOfADeadBackupAreRemovedByTheNextOne(t *testing.T) {
	base := t.TempDir()
	dest := filepath.Join(base, "backup")
	s := filledQueue(t, filepath.Join(base, "q"))
	ok(t, os.MkdirAll(dest+".partial-1/localqueue.d", 0o700))
	ok(t, os.WriteFile(dest+".partial-1/localqueue.partial", nil, 0o600))
	ok(t, os.Mkdir(dest+".partial-2", 0o700)) // nothing says that it is ours
	inner := error(nil)
	calls := 0
	_, err := s.Backup(t.Context(), dest, queue.BackupOptions{Progress: func(int, int) {
		if calls++; calls == 1 { // while the outer one lives, another one must leave it alone
			_, inner = s.Backup(t.Context(), dest, queue.BackupOptions{})
		}
	}})
	ok(t, inner)
	matches(t, err, queue.ErrExists)
	same(t, "names", []string{"backup", "backup.partial-2", "q"}, names(t, base))
	sound(t, dest)
}

func TestABackupToAFullDiskSaysSoAndLeavesNothing(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("no small disk can be mounted here: ", err)
	}
	t.Cleanup(func() { ok(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	s := filledQueue(t, t.TempDir())
	dest := filepath.Join(disk, "backup")
	_, err := s.Backup(t.Context(), dest, queue.BackupOptions{})
	matches(t, err, queue.ErrDiskFull)
	contains(t, err, dest)
	same(t, "left", []string(nil), names(t, disk))
	ok(t, second(s.Default().Put(t.Context(), nil)))
	ok(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=30m"))
	ok(t, second(s.Backup(t.Context(), dest, queue.BackupOptions{})))
	sound(t, dest)
}

func TestABackupOfADamagedQueueIsNone(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "q")
	path := closedQueue(t, dir)
	st, err := os.Stat(path)
	ok(t, err)
	damage(t, path, 40*2048, int(st.Size())-40*2048)
	s := openStore(t, dir)
	_, err = s.Backup(t.Context(), filepath.Join(base, "backup"), queue.BackupOptions{})
	matches(t, err, queue.ErrCorrupt)
	same(t, "names", []string{"q"}, names(t, base))
}

func TestCase05_ABackupDropsNoLocks(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "q")
	s := openStore(t, dir)
	works(t, s)
	locked := func() [2]int {
		return [2]int{locksOf(t, filepath.Join(dir, "localqueue.db")), locksOf(t, filepath.Join(dir, "localqueue.db-shm"))}
	}
	before := locked()
	if before[0] == 0 || before[1] == 0 {
		t.Fatal("an open Store holds no locks")
	}
	for n := range 3 {
		ok(t, second(s.Backup(t.Context(), filepath.Join(base, fmt.Sprint("backup", n)), queue.BackupOptions{})))
		same(t, "locks", before, locked())
	}
	_, err := queue.Restore(t.Context(), dir, filepath.Join(base, "copy"), queue.RestoreOptions{})
	matches(t, err, queue.ErrUnclosed)
	same(t, "locks after a refused restore", before, locked())
}
