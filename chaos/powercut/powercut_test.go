package powercut

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

var modes = []queue.Durability{queue.Full, queue.Balanced, queue.Normal}

func TestAPowerCutTakesOnlyWhatTheModeLetsItTake(t *testing.T) {
	lib := preload.Build(t)
	images, seed := imagesAndSeed(t)
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			log, failed := newShelf(t, seed).record(t, string(mode), func(dir, log string) error {
				var clients []*exec.Cmd
				for i := range 2 {
					clients = append(clients, start(t, "client", lib.Env(preload.Options{Dir: dir, Log: log}),
						dirEnv+"="+dir, modeEnv+"="+string(mode), fmt.Sprintf("%s=c%d", nameEnv, i)))
				}
				return errors.Join(end(clients[0]), end(clients[1]))
			})
			records, story := read(t, log)
			sum := &summary{mode: mode}
			examine(t, nil, records, Cuts(records, story.answers, images, seed), func(c Cut, dir string) error {
				seen := map[string]Status{}
				set := func(st queue.Stats) {
					if s := settings(st.Paused, st.KeepAcked); s != (Status{}) {
						seen[settingsOf(st.Queue)] = s
					}
				}
				if err := look(dir, mode, set, func(r queue.Record) error { return note(seen, r) }); err != nil {
					return err
				}
				return sum.add(story.Compare(mode, c.At, seen))
			})
			t.Log(sum.String(len(story.answers), len(records)))
			if failed != nil { // after the images, which say more about a fault that has led the clients astray
				t.Error(failed)
			}
			if err := reached(records); err != nil {
				t.Error(err)
			}
			if mode == queue.Normal && sum.lost == 0 {
				t.Error("no image has lost anything: they are not what a power cut leaves")
			}
		})
	}
}

// note keeps what is seen of a job.
func note(seen map[string]Status, r queue.Record) error {
	name, whole := nameOf(r.Payload)
	if _, twice := seen[name]; !whole || twice {
		return fmt.Errorf("job %s: its payload as it was put: %v; there twice: %v", name, whole, twice)
	}
	seen[name] = Status{r.State, r.Delivery}
	return nil
}

func TestAPowerCutDuringTheFirstOpenLeavesAQueueOrNone(t *testing.T) {
	lib := preload.Build(t)
	cutTwice(t, lib, nil, func(dir string) error {
		jobs, err := jobsIn(dir)
		if len(jobs) > 0 {
			err = errors.Join(err, fmt.Errorf("jobs that nobody put: %v", jobs))
		}
		return err
	})
}

func TestAPowerCutDuringAMigrationLosesNoJob(t *testing.T) {
	lib := preload.Build(t)
	for _, version := range []string{"1.0.0", "1.4.1"} {
		t.Run(version, func(t *testing.T) {
			old := unpacked(t, filepath.Join("..", "..", "queue", "testdata", "original", version+".db.gz"))
			whole := t.TempDir()
			if err := old.Write(whole); err != nil {
				t.Fatal(err)
			}
			want, err := jobsIn(whole)
			if err != nil || len(want) == 0 {
				t.Fatalf("%d jobs in the old file, %v", len(want), err)
			}
			cutTwice(t, lib, old, func(dir string) error {
				got, err := jobsIn(dir)
				if err == nil && !reflect.DeepEqual(want, got) { // faster than a diff
					err = fmt.Errorf("jobs (-want +got):\n%s", cmp.Diff(want, got))
				}
				return err
			})
		})
	}
}

// cutTwice cuts the power while a process opens what is there, after each record, and then while another one opens what one of
// these power cuts has left.
func cutTwice(t *testing.T, lib *preload.Library, there Image, look func(dir string) error) {
	t.Helper()
	images, seed := imagesAndSeed(t)
	shelf := newShelf(t, seed)
	for i, name := range []string{"first", "second"} {
		log, failed := shelf.record(t, name, func(dir, log string) error {
			if err := there.Write(dir); err != nil {
				return err
			}
			return end(start(t, "opener", lib.Env(preload.Options{Dir: dir, Log: log}), dirEnv+"="+dir))
		})
		if failed != nil {
			t.Fatal(failed)
		}
		records, _ := read(t, log)
		examineOnce(t, there, records, 2*images, seed, look)
		if i > 0 || t.Failed() {
			return
		}
		r := rand.New(rand.NewPCG(seed, 2))
		cut := Cut{At: len(records)/4 + r.IntN(len(records)/2), Way: Ways[r.IntN(len(Ways))], Seed: seed}
		if err := Images(NewDisk(there), records, []Cut{cut}, func(_ Cut, m Image) { there = m }); err != nil {
			t.Fatal(err)
		}
	}
}

// jobsIn looks at a queue, and returns its jobs but the one that the look puts.
func jobsIn(dir string) (jobs []queue.Record, err error) {
	err = look(dir, queue.Full, func(queue.Stats) {}, func(r queue.Record) error { jobs = append(jobs, r); return nil })
	return jobs, err
}

// unpacked is a directory with a database in it that gzip has packed.
func unpacked(t *testing.T, path string) Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return Image{"localqueue.db": data}
}
