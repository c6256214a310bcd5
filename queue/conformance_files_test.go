package queue_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/queue"
)

// What a directory and its file may be doesn't depend on who else has it open: these cases make their own.

func TestConformanceOfFiles(t *testing.T) {
	for _, c := range fileCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

type fileCase struct {
	name string
	run  func(t *testing.T)
}

var fileCases = concat(openCases, refusedCases, permissionCases, replacedCases, adoptedCases, diskCases)

func concat[T any](lists ...[]T) (all []T) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func matches(t testing.TB, err error, wanted ...error) {
	t.Helper()
	for _, want := range wanted {
		if !errors.Is(err, want) {
			t.Fatalf("the error is %v, want one that matches %q", err, want)
		}
	}
}

func contains(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Fatalf("the error is %v, want %q in it", err, part)
		}
	}
}

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func openStore(t testing.TB, dir string, opts ...queue.Option) *queue.Store {
	t.Helper()
	s, err := queue.Open(dir, opts...)
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	return s
}

// works puts and gets a job.
func works(t testing.TB, s *queue.Store) {
	t.Helper()
	ctx := context.Background()
	_, err := s.Default().Put(ctx, []byte("works"))
	ok(t, err)
	j, err := s.Default().TryGet(ctx)
	ok(t, err)
	same(t, "payload", "works", string(j.Payload))
	ok(t, j.Ack(ctx))
}

// content is every file below a directory, with its mode and a hash. No Store may have it open in this process: reading
// the database's file would drop SQLite's locks.
func content(t testing.TB, dir string) (all []string) {
	t.Helper()
	ok(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, fmt.Sprintf("%s %v %x", strings.TrimPrefix(path, dir), info.Mode(), sha256.Sum256(data)))
		return err
	}))
	return all
}

// inRole runs this binary again in a role, and returns what it printed.
func inRole(t testing.TB, role string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = roleEnviron(role, env...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(out), err
}

var openCases = []fileCase{
	{"Rule44_InMemoryIsRefusedAndTheErrorNamesTheTestHelper", func(t *testing.T) {
		for _, dir := range []string{":memory:", "file::memory:", "file::memory:?cache=shared"} {
			_, err := queue.Open(dir)
			matches(t, err, queue.ErrInMemory)
			contains(t, err, "queuetest.Open")
			_, err = queue.Migrate(t.Context(), dir)
			matches(t, err, queue.ErrInMemory)
			_, err = os.Stat(dir)
			matches(t, err, os.ErrNotExist)
		}
	}},
	{"Rule39_AnyPathIsTakenAsItIsWritten", func(t *testing.T) {
		base := t.TempDir()
		names := []string{"a?b", "?mode=memory", "#1", "100%", "%41", "two words", " lead", "plus+amp&semi;", "日本 é", "quote'\"`", "back\\slash", "-", "~", "a:b", "file:x", "new\nline"}
		for _, name := range names {
			dir := filepath.Join(base, name)
			s, err := queue.Open(dir)
			if err != nil {
				t.Fatalf("open %q: %v", name, err)
			}
			works(t, s)
			same(t, "Dir", dir, s.Dir())
			ok(t, inForeignTx(t.Context(), dir, func(tx queue.DBTX) error { return second(s.Default().PutTx(t.Context(), tx, []byte(name))) }))
			j, err := s.Default().TryGet(t.Context())
			ok(t, err)
			same(t, "payload", name, string(j.Payload))
			for _, file := range []string{"localqueue.db", "localqueue.db-wal", "localqueue.lock"} {
				st, err := os.Stat(filepath.Join(dir, file))
				ok(t, err)
				same(t, "mode of "+file, os.FileMode(0o600), st.Mode())
			}
			ok(t, s.Close())
		}
		made, err := os.ReadDir(base)
		ok(t, err)
		same(t, "directories made", len(names), len(made))
	}},
	{"Rule39_OneDirectoryByManyNamesIsOneQueue", func(t *testing.T) {
		base := t.TempDir()
		dir := filepath.Join(base, "q")
		openStore(t, dir)
		ok(t, os.Symlink(dir, filepath.Join(base, "link")))
		wd, err := os.Getwd()
		ok(t, err)
		relative, err := filepath.Rel(wd, dir)
		ok(t, err)
		for i, name := range []string{dir + "/", dir + "/.", filepath.Join(base, "link"), relative, filepath.Join(base, "x/../q")} {
			s := openStore(t, name)
			_, err := s.Default().Put(t.Context(), nil)
			ok(t, err)
			st, err := openStore(t, dir).Default().Stats(t.Context())
			ok(t, err)
			same(t, "jobs after "+name, int64(i+1), st.Ready)
		}
	}},
	{"Rule41_AMissingDirectoryIsMadeUnlessItMustExist", func(t *testing.T) {
		base := t.TempDir()
		dir := filepath.Join(base, "a", "b")
		_, err := queue.Open(dir, queue.MustExist())
		matches(t, err, queue.ErrNoQueue)
		_, err = queue.MigrateStatus(t.Context(), dir)
		matches(t, err, queue.ErrNoQueue)
		_, err = os.Stat(filepath.Join(base, "a"))
		matches(t, err, os.ErrNotExist)
		_, err = queue.Open(base, queue.MustExist()) // there, but empty
		matches(t, err, queue.ErrNoQueue)
		same(t, "files", []string(nil), content(t, base))
		ok(t, os.WriteFile(filepath.Join(base, "localqueue.db"), nil, 0o600))
		_, err = queue.Open(base, queue.MustExist())
		matches(t, err, queue.ErrNoQueue)
		works(t, openStore(t, base))
		works(t, openStore(t, base, queue.MustExist()))
		works(t, openStore(t, dir))
	}},
	{"Rule42_WhatIsNoDirectoryIsSaidSo", func(t *testing.T) {
		base := t.TempDir()
		file := filepath.Join(base, "file")
		ok(t, os.WriteFile(file, []byte("text"), 0o600))
		before := content(t, base)
		for _, dir := range []string{file, filepath.Join(file, "below")} {
			_, err := queue.Open(dir)
			matches(t, err, queue.ErrNotDirectory)
			_, err = queue.Open(dir, queue.MustExist())
			matches(t, err, queue.ErrNotDirectory)
		}
		_, err := queue.Open("")
		matches(t, err, queue.ErrInvalid)
		same(t, "files", before, content(t, base))
		ok(t, os.MkdirAll(filepath.Join(base, "d", "localqueue.db"), 0o700))
		_, err = queue.Open(filepath.Join(base, "d"))
		matches(t, err, queue.ErrForeignFile)
	}},
	{"Rule39_TheSchemaIsMadeOnceAndItsStepsAreTold", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "q")
		applied, err := queue.Migrate(t.Context(), dir)
		ok(t, err)
		status, err := queue.MigrateStatus(t.Context(), dir)
		ok(t, err)
		same(t, "steps", len(status), len(applied))
		for i, m := range status {
			if !m.Applied || m.Version != int64(i+1) || !strings.HasSuffix(m.Name, ".sql") {
				t.Errorf("step %d: %+v", i, m)
			}
		}
		before := content(t, dir)
		again, err := queue.Migrate(t.Context(), dir)
		ok(t, err)
		same(t, "steps applied again", 0, len(again))
		same(t, "files", before, content(t, dir))
	}},
}
