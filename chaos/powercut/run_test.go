package powercut

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

// How the tests are run otherwise than by themselves.
const (
	imagesEnv  = "LOCALQUEUE_POWERCUT_IMAGES"  // for each mode by chance, and as many right after answers; as many twice of an open. Default 40
	seedEnv    = "LOCALQUEUE_POWERCUT_SEED"    // default: by the clock
	recordsEnv = "LOCALQUEUE_POWERCUT_RECORDS" // a directory with the records of an earlier run, to make its images again
)

// imagesAndSeed is how many images are asked for, and the seed of what is left to chance.
func imagesAndSeed(t *testing.T) (images int, seed uint64) {
	t.Helper()
	return int(number(t, imagesEnv, 40)), number(t, seedEnv, uint64(time.Now().UnixNano()))
}

func number(t *testing.T, env string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return n
}

// shelf is where the records of a test are.
type shelf struct {
	dir   string
	older bool // they are those of an earlier run
}

// newShelf makes a shelf. If the test fails, it is kept, and the way to make the same images again is printed.
func newShelf(t *testing.T, seed uint64) *shelf {
	t.Helper()
	t.Logf("images by the seed %d", seed)
	if dir := os.Getenv(recordsEnv); dir != "" {
		return &shelf{dir, true}
	}
	s := &shelf{dir: t.TempDir()}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		kept, err := os.MkdirTemp("", "localqueue-powercut-")
		if err == nil {
			kept = filepath.Join(kept, "records")
			err = os.Rename(s.dir, kept)
		}
		t.Logf("to repeat it: %s=%d %s=%s %s=%s go test ./chaos/powercut -run '^%s$' (%v)",
			seedEnv, seed, recordsEnv, kept, imagesEnv, os.Getenv(imagesEnv), strings.ReplaceAll(t.Name(), "/", "$/^"), err)
	})
	return s
}

// record makes a record, unless there is one, and returns it with the error of whoever made it.
func (s *shelf) record(t *testing.T, name string, run func(dir, log string) error) (log string, failed error) {
	t.Helper()
	log = filepath.Join(s.dir, name)
	if !s.older {
		failed = run(t.TempDir(), log)
	}
	return log, failed
}

// start starts this test binary in a role, with the environment of the preloaded library.
func start(t *testing.T, role string, env []string, more ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = slices.Concat(os.Environ(), env, []string{roleEnv + "=" + role, "GORACE=atexit_sleep_ms=0"}, more)
	cmd.Stderr = &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func end(cmd *exec.Cmd) error {
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("a process of the workload: %w: %s", err, cmd.Stderr)
	}
	return nil
}

func read(t *testing.T, log string) ([]preload.Record, *Story) {
	t.Helper()
	records, err := preload.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	story, err := ReadStory(records)
	if err != nil {
		t.Fatal(err)
	}
	return records, story
}

// reached tells whether a workload has come to what can go wrong.
func reached(records []preload.Record) error {
	var checkpoints, truncated, begun, removed int
	for _, r := range records {
		switch {
		case r.Kind == preload.Synced && r.Name == "localqueue.db":
			checkpoints++
		case r.Kind == preload.Truncated && r.Name == "localqueue.db":
			truncated++
		case r.Kind == preload.Wrote && isWAL(r.Name) && r.Offset == 0:
			begun++
		case r.Kind == preload.Unlinked && isWAL(r.Name):
			removed++
		}
	}
	if checkpoints < 4 || truncated < 1 || begun < 3 || removed < 1 {
		return fmt.Errorf("the workload doesn't reach what can go wrong: %d syncs and %d truncations of the file, %d beginnings and %d removals of the WAL",
			checkpoints, truncated, begun, removed)
	}
	return nil
}

// examine makes the images of a run that began with some files, and has each looked at in a directory of its own, on all
// processors. After three errors it stops.
func examine(t *testing.T, before Image, records []preload.Record, cuts []Cut, look func(c Cut, dir string) error) {
	t.Helper()
	type job struct {
		cut   Cut
		image Image
	}
	jobs := make(chan job)
	var all sync.WaitGroup
	var bad atomic.Int32
	scratch := t.TempDir()
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for j := range jobs {
				if bad.Load() >= 3 {
					continue
				}
				dir, err := os.MkdirTemp(scratch, "")
				if err == nil {
					err = errors.Join(j.image.Write(dir), look(j.cut, dir), os.RemoveAll(dir))
				}
				if err != nil {
					bad.Add(1)
					t.Errorf("power cut after %d of %d records, %s of what was not synced survives: %v", j.cut.At, len(records), j.cut.Way, err)
				}
			}
		})
	}
	err := Images(NewDisk(before), records, cuts, func(c Cut, m Image) { jobs <- job{c, m} })
	close(jobs)
	all.Wait()
	if err != nil {
		t.Error(err)
	}
}

// examineOnce cuts after every record, in both systematic ways and in one by chance, and has so many of the images looked at,
// chosen by chance, that differ from those before them.
func examineOnce(t *testing.T, before Image, records []preload.Record, most int, seed uint64, look func(dir string) error) {
	t.Helper()
	var cuts []Cut
	for at := range len(records) + 1 {
		cuts = append(cuts, Cut{At: at, Way: Nothing}, Cut{At: at, Way: Everything}, Cut{At: at, Way: Ways[at%len(Ways)], Seed: seed + uint64(at)})
	}
	var distinct []Cut
	known := map[[sha256.Size]byte]bool{}
	err := Images(NewDisk(before), records, cuts, func(c Cut, m Image) {
		if sum := m.sum(); !known[sum] {
			known[sum], distinct = true, append(distinct, c)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 3))
	for len(distinct) > most {
		i := r.IntN(len(distinct))
		distinct = slices.Delete(distinct, i, i+1)
	}
	examine(t, before, records, distinct, func(_ Cut, dir string) error { return look(dir) })
}

func (m Image) sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(m)) {
		_, _ = fmt.Fprintf(h, "%s %d\n%s", name, len(m[name]), m[name])
	}
	h.Sum(sum[:0])
	return sum
}

// look opens the queue that a power cut has left, which must be sound and go on working, and shows its queues
// and jobs.
func look(dir string, mode queue.Durability, showQueue func(queue.Stats), show func(queue.Record) error) (err error) {
	s, err := queue.Open(dir, queue.WithDurability(mode), queue.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx := context.Background()
	found, err := s.Check(ctx, false)
	if err != nil || len(found) > 0 {
		return fmt.Errorf("the file isn't sound: %v, %w", found, err)
	}
	queues, err := s.Queues(ctx)
	if err != nil {
		return err
	}
	for _, st := range queues {
		showQueue(st)
		q, err := s.Queue(st.Queue)
		if err != nil {
			return err
		}
		for _, state := range []queue.State{queue.Ready, queue.Delayed, queue.Leased, queue.Acked, queue.Failed} {
			for r, err := range q.All(ctx, state) {
				if err == nil {
					err = show(r)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	_, err = s.Default().Put(ctx, nil)
	return err
}

// summary is a line of the table: what the images of a mode were, and what they kept.
type summary struct {
	mode                               queue.Durability
	mu                                 sync.Mutex
	images, promised, lost, violations int
}

func (s *summary) add(r Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images++
	s.promised += r.Promised
	s.lost += r.Lost
	s.violations += len(r.Violations)
	if len(r.Violations) == 0 {
		return nil
	}
	return fmt.Errorf("%d violations: %s", len(r.Violations), strings.Join(r.Violations[:min(3, len(r.Violations))], "; "))
}

func (s *summary) String(answers, records int) string {
	return fmt.Sprintf("%-8s %d answers in %d records; %d images: %d promises, %d violations; %d answers lost that may be",
		s.mode, answers, records, s.images, s.promised, s.violations, s.lost)
}
