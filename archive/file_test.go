package archive_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/queue"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsThereOnlyWhenItIsWhole(t *testing.T) {
	s, out := numbered(t, 300), filepath.Join(t.TempDir(), "jobs.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opts := archive.FileOptions{ExportOptions: archive.ExportOptions{Progress: func(int64) { cancel() }}}
	if _, err := archive.ExportFile(ctx, s, out, opts); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that isn't whole has the name: %v", err)
	}
	name, _, _ := strings.Cut(read(t, out+".part"), "\n")
	_, err := archive.ExportFile(t.Context(), s, out, archive.FileOptions{})
	matches(t, err, archive.ErrExists)

	put(t, s.Default(), "after it began")
	res, err := archive.ExportFile(t.Context(), s, out, archive.FileOptions{Resume: true})
	if err != nil || res.Jobs != 300 || !strings.Contains(name, res.Name) {
		t.Fatalf("%+v, %v: want the same export, and its 300 jobs", res, err)
	}
	if st, err := os.Stat(out); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if _, err := os.Stat(out + ".part"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished file is left: %v", err)
	}
	to := open(t)
	mustImport(t, to, read(t, out), archive.ImportOptions{})
	if diff := cmp.Diff(numbers(300), payloads(t, to)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func TestAnExportGoesOnWhereverItWasBrokenOff(t *testing.T) {
	s, out := numbered(t, 3), filepath.Join(t.TempDir(), "jobs.jsonl")
	if _, err := archive.ExportFile(t.Context(), s, out, archive.FileOptions{Resume: true}); err != nil {
		t.Fatalf("nothing to resume: %v", err)
	}
	text := read(t, out)
	for cut := 0; cut <= len(text); cut++ {
		if cut%13 > 0 && !strings.Contains(text[max(0, cut-2):min(len(text), cut+1)], "\n") {
			continue // within a line one place is as good as the next
		}
		write(t, out+".part", text[:cut])
		res, err := archive.ExportFile(t.Context(), s, out, archive.FileOptions{Resume: true, Overwrite: true})
		if err != nil || res.Jobs != 3 {
			t.Fatalf("cut at %d: %+v, %v", cut, res, err)
		}
		got := read(t, out)
		if cut <= strings.Index(text, "\n") { // not even the header was whole: another export
			got, text := jobLines(t, got), jobLines(t, text)
			if got != text {
				t.Fatalf("cut at %d: %q", cut, got)
			}
		} else if got != text {
			t.Fatalf("cut at %d:\n%s", cut, cmp.Diff(text, got))
		}
	}
}

func TestAnExportTakesNoOthersPlace(t *testing.T) {
	s, dir := numbered(t, 1), t.TempDir()
	out := filepath.Join(dir, "jobs.jsonl")
	write(t, out, "precious")
	if err := os.Symlink(out, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	export := func(path string, opts archive.FileOptions) error {
		_, err := archive.ExportFile(t.Context(), s, path, opts)
		return err
	}
	force := archive.FileOptions{Overwrite: true}
	matches(t, export(out, archive.FileOptions{}), archive.ErrExists)
	matches(t, export(dir, force), archive.ErrExists)
	matches(t, export(filepath.Join(dir, "link"), force), archive.ErrExists)
	matches(t, export(os.DevNull, force), archive.ErrExists)
	for _, own := range []string{"localqueue.db", "localqueue.db-wal", "localqueue.lock", "localqueue.new"} {
		matches(t, export(filepath.Join(s.Dir(), own), force), archive.ErrExists)
		matches(t, export(filepath.Join(dir, own), force), archive.ErrExists) // of another queue, or one to come
	}
	database := filepath.Join(dir, "other.db")
	write(t, database, "SQLite format 3\x00 and so on")
	matches(t, export(database, force), archive.ErrExists)
	matches(t, export(filepath.Join(dir, "no", "jobs.jsonl"), force), os.ErrNotExist)
	if got := read(t, out); got != "precious" {
		t.Errorf("the file says %q", got)
	}
	if err := export(out, force); err != nil || !strings.Contains(read(t, out), "localqueue_export_end") {
		t.Errorf("replacing it: %v", err)
	}
	sound(t, s)
}

func TestAnUnfinishedFileOfSomethingElseIsLeftAsItIs(t *testing.T) {
	s := numbered(t, 2)
	out := filepath.Join(t.TempDir(), "jobs.jsonl")
	whole := export(t, s, "default")
	lines := strings.SplitAfter(whole, "\n")
	for name, tt := range map[string]struct {
		text string
		want error
	}{
		"another queue's":   {lines[0], queue.ErrInvalid},
		"no export":         {"{\"text\":\"a\"}\n", archive.ErrUnnamed},
		"cut at its head":   {strings.Replace(lines[0], `"queue":"default"`, `"queue":null`, 1) + lines[1][1:], archive.ErrLine},
		"a line changed":    {lines[0] + strings.Replace(lines[1], `"text"`, `"Text"`, 1), archive.ErrLine},
		"a line emptied":    {lines[0] + "\n" + lines[1], archive.ErrLine},
		"a line missing":    {lines[0] + lines[2] + lines[3], archive.ErrTruncated},
		"ids not given yet": {lines[0] + strings.Replace(lines[1], `"id":1`, `"id":3`, 1), archive.ErrLine},
		"of another queue":  {lines[0] + strings.Replace(lines[1], `"queue":"default"`, `"queue":"other"`, 1), archive.ErrLine},
		"a newer version's": {strings.Replace(lines[0], ":1", ":2", 1), archive.ErrVersion},
		"ids out of order":  {strings.Replace(lines[0], `"queue":"default"`, `"queue":null`, 1) + lines[2] + lines[1], archive.ErrLine},
	} {
		write(t, out+".part", tt.text)
		opts := archive.FileOptions{Resume: true}
		if name != "another queue's" {
			opts.Queue = "default"
		}
		_, err := archive.ExportFile(t.Context(), s, out, opts)
		if !errors.Is(err, tt.want) || read(t, out+".part") != tt.text {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnExportOfAnotherFileIsNotFinishedWithThisOne(t *testing.T) {
	s, out := numbered(t, 3), filepath.Join(t.TempDir(), "jobs.jsonl")
	lines := strings.SplitAfter(export(t, numbered(t, 3), ""), "\n")
	for _, text := range []string{lines[0], lines[0] + lines[1], strings.Join(lines, "")} {
		write(t, out+".part", text)
		_, err := archive.ExportFile(t.Context(), s, out, archive.FileOptions{Resume: true})
		if matches(t, err, archive.ErrOtherSource); read(t, out+".part") != text {
			t.Error("the unfinished file was changed")
		}
	}
}

func TestAChangedLineOfAnUnfinishedFileIsNamed(t *testing.T) {
	s, out := numbered(t, 3), filepath.Join(t.TempDir(), "jobs.jsonl")
	lines := strings.SplitAfter(export(t, s, ""), "\n")
	write(t, out+".part", lines[0]+lines[1]+lines[2][:20]+"\n"+lines[3])
	_, err := archive.ExportFile(t.Context(), s, out, archive.FileOptions{Resume: true})
	var line *archive.LineError
	if !errors.As(err, &line) || line.Line != 3 {
		t.Errorf("%v, want line 3", err)
	}
}

func TestAnExportToAFullDiskSaysSo(t *testing.T) {
	full := "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("there is no device that is always full")
	}
	f, err := os.OpenFile(full, os.O_WRONLY, 0)
	if err != nil {
		t.Skip("the device that is always full can't be opened: ", err)
	}
	defer func() { _ = f.Close() }()
	_, err = archive.Export(t.Context(), numbered(t, 1), f, archive.ExportOptions{})
	matches(t, err, queue.ErrDiskFull)
}

func TestTwoExportsDontWriteToOneFile(t *testing.T) {
	s, out := numbered(t, 300), filepath.Join(t.TempDir(), "jobs.jsonl")
	tried := false
	opts := archive.FileOptions{ExportOptions: archive.ExportOptions{Progress: func(int64) {
		if tried {
			return
		}
		tried = true
		_, err := archive.ExportFile(t.Context(), s, out, archive.FileOptions{Resume: true})
		matches(t, err, archive.ErrExists)
	}}}
	if res, err := archive.ExportFile(t.Context(), s, out, opts); err != nil || res.Jobs != 300 || !tried {
		t.Errorf("%+v, %v", res, err)
	}
	var direct bytes.Buffer
	if _, err := archive.Export(t.Context(), s, &direct, archive.ExportOptions{}); err != nil || jobLines(t, direct.String()) != jobLines(t, read(t, out)) {
		t.Errorf("the file differs from the stream: %v", err)
	}
}
