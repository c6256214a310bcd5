package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/localqueue/localqueue/queue"
)

// In base: far/deep is a directory, and here/link leads to it, so that here/link/../q is far/q.
func withLink(t *testing.T) (base string) {
	t.Helper()
	base = t.TempDir()
	ok(t, os.MkdirAll(filepath.Join(base, "far", "deep"), 0o700))
	ok(t, os.Mkdir(filepath.Join(base, "here"), 0o700))
	ok(t, os.Symlink(filepath.Join("..", "far", "deep"), filepath.Join(base, "here", "link")))
	return base
}

func TestTheParentOfALinkIsWhereTheSystemFindsIt(t *testing.T) {
	base := withLink(t)
	t.Chdir(base)
	put := func(dir string) {
		s, err := queue.Open(dir)
		ok(t, err)
		same(t, "as given", dir, s.Dir())
		ok(t, second(s.Default().Put(t.Context(), nil)))
		ok(t, s.Close())
	}
	put("here/link/../q")
	put(base + "/here/link/../q")
	put("here/link/../q/../q/./")
	same(t, "here", []string{"link"}, names(t, "here"))
	same(t, "jobs", int64(3), ready(t, filepath.Join(base, "far", "q")))

	ok(t, os.Chdir("here/link"))
	put("../q")
	t.Setenv("PWD", base+"/here/link") // as a shell has it
	put("../q")
	put("missing/../../q") // nothing to resolve: as it is written
	ok(t, os.Chdir(base))
	same(t, "jobs", int64(6), ready(t, filepath.Join(base, "far", "q")))
	put("new/er")
	same(t, "jobs", int64(1), ready(t, filepath.Join(base, "new", "er")))
}

func TestABackupAndARestoreGoToTheParentOfALinkToo(t *testing.T) {
	base := withLink(t)
	t.Chdir(base)
	far := filepath.Join(base, "far", "q")
	for dir, jobs := range map[string]int{"far/q": 1, "here/q": 2} {
		s := openStore(t, dir)
		ok(t, second(s.Default().PutMany(t.Context(), make([]queue.NewJob, jobs))))
		info, err := s.Backup(t.Context(), "here/link/../of-"+strings.ReplaceAll(dir, "/", "-"), queue.BackupOptions{})
		ok(t, err)
		same(t, "where", filepath.Join(base, "far"), filepath.Dir(info.Dir))
		ok(t, s.Close())
	}
	info, err := queue.Restore(t.Context(), "here/link/../of-here-q", "here/link/../q", queue.RestoreOptions{Replace: true})
	ok(t, err)
	same(t, "where", far, info.Dir)
	same(t, "jobs", int64(2), ready(t, far))
	same(t, "jobs before", int64(1), ready(t, info.Replaced))
	same(t, "here", []string{"link", "q"}, names(t, "here"))
}

func TestANameThatLeadsNowhereIsRefused(t *testing.T) {
	base := withLink(t)
	ok(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	ok(t, os.Symlink("nothing", filepath.Join(base, "dangling")))
	ok(t, os.Symlink("round", filepath.Join(base, "round")))
	backup, before := queueWith(t, 1), names(t, base)
	for name, want := range map[string]error{
		"file/../q":                       queue.ErrNotDirectory,
		"dangling/../q":                   queue.ErrNotDirectory,
		"round/../q":                      queue.ErrIO,
		repeat("n", 300):                  queue.ErrInvalid,
		repeat("n", 300) + "/../q":        queue.ErrInvalid,
		repeat("n", 300) + "/q":           queue.ErrInvalid,
		repeat("long/", 100) + "q":        queue.ErrInvalid,
		repeat(repeat("n", 255)+"/", 100): queue.ErrInvalid,
	} {
		dir := base + "/" + name
		for op, err := range map[string]error{
			"open":    second(queue.Open(dir)),
			"inspect": second(queue.Inspect(t.Context(), dir)),
			"restore": second(queue.Restore(t.Context(), backup, dir, queue.RestoreOptions{})),
		} {
			if !errors.Is(err, want) || !strings.Contains(err.Error(), base) {
				t.Errorf("%s of %.40s: %v; want one that matches %q and names it", op, name, err, want)
			}
		}
	}
	same(t, "names", before, names(t, base))
}

// The copy has a longer name while it is made.
func TestABackupAndARestoreWhoseNameIsTooLongAreRefused(t *testing.T) {
	from, base := queueWith(t, 1), t.TempDir()
	s := openStore(t, from)
	deep := base
	for len(deep) < 380 {
		deep = filepath.Join(deep, repeat("d", 50))
	}
	ok(t, os.MkdirAll(deep, 0o700))
	for _, dest := range []string{filepath.Join(base, repeat("n", 300)), filepath.Join(base, repeat("n", 250)), deep + "/" + repeat("n", 488-len(deep)-1)} {
		_, err := s.Backup(t.Context(), dest, queue.BackupOptions{})
		matches(t, err, queue.ErrInvalid)
		_, err = queue.Restore(t.Context(), from, dest, queue.RestoreOptions{})
		matches(t, err, queue.ErrInvalid)
		contains(t, err, "shorter")
	}
	same(t, "names", []string{repeat("d", 50)}, names(t, base))
	same(t, "below", []string(nil), names(t, deep))
	longest := deep + "/" + repeat("n", 490-len(deep)-1)
	works(t, openStore(t, longest))
}
