package archive_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/queue"
	"github.com/localqueue/localqueue/queue/queuetest"
)

// roleEnv makes this test binary play a part, when a test has started it again as another process.
const roleEnv = "LOCALQUEUE_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == importRole {
		playImport()
		return
	}
	goleak.VerifyTestMain(m)
}

func put(t testing.TB, q *queue.Queue, payload string, opts ...queue.PutOption) {
	t.Helper()
	if _, err := q.Put(t.Context(), []byte(payload), opts...); err != nil {
		t.Fatal(err)
	}
}

// export is the text of an export.
func export(t testing.TB, s *queue.Store, only string) string {
	t.Helper()
	var text bytes.Buffer
	if _, err := archive.Export(t.Context(), s, &text, archive.ExportOptions{Queue: only}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// jobLines is an export without its header, which is another one each time.
func jobLines(t testing.TB, text string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n")
	if !ok {
		t.Fatalf("no header in %.80q", text)
	}
	return rest
}

func importText(t testing.TB, s *queue.Store, text string, opts archive.ImportOptions) (archive.ImportResult, error) {
	t.Helper()
	return archive.Import(t.Context(), s, strings.NewReader(text), opts)
}

func mustImport(t testing.TB, s *queue.Store, text string, opts archive.ImportOptions) archive.ImportResult {
	t.Helper()
	res, err := importText(t, s, text, opts)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func sound(t testing.TB, s *queue.Store) {
	t.Helper()
	found, err := s.Check(t.Context(), false)
	if err != nil || len(found) > 0 {
		t.Fatalf("check: %v, %v", found, err)
	}
}

// payloads is what a Store has, in the order of ids.
func payloads(t testing.TB, s *queue.Store) (all []string) {
	t.Helper()
	for job, err := range s.Export(t.Context(), queue.ExportOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(job.Payload))
	}
	return all
}

// open is a Store with few syncs.
func open(t testing.TB, opts ...queue.Option) *queue.Store {
	t.Helper()
	return queuetest.Open(t, append(opts, queue.WithDurability(queue.Normal))...)
}

// matches fails the test unless err matches every one of the wanted.
func matches(t testing.TB, err error, wanted ...error) {
	t.Helper()
	for _, want := range wanted {
		if !errors.Is(err, want) {
			t.Fatalf("the error is %v, want one that matches %q", err, want)
		}
	}
}
