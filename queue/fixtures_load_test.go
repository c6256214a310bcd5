package queue_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// Files that other programs and older versions wrote are in testdata: those of the Python original in original/, made by
// make.py, and one for each schema that was released in released/, made by the role make-fixture. Beside each is a
// manifest that says what is in it.

// fixture is one such file.
type fixture struct {
	name     string
	original bool
	packed   string // path of the file, gzipped
	jobs     []fixtureJob
	stats    []queue.Stats    // as the program that wrote the file counted
	tables   map[string][]any // rows of tables that aren't ours
}

// fixtureJob is a job as it must be found: its bytes are told by their hash.
type fixtureJob struct {
	Record  queue.Record
	SHA256  string
	Story   []queue.Delivery `json:",omitempty"`
	note    string
	strict  bool // the payload is JSON as the standard has it
	expired bool // leased, and the lease has ended long ago
}

func fixtures(t *testing.T) (all []fixture) {
	t.Helper()
	for _, dir := range []struct {
		name string
		read func(*testing.T, []byte, *fixture)
	}{{"original", readOriginal}, {"released", readReleased}} {
		manifests, err := filepath.Glob(filepath.Join("testdata", dir.name, "*.json"))
		ok(t, err)
		if len(manifests) == 0 {
			t.Fatalf("no fixtures in testdata/%s", dir.name)
		}
		for _, path := range manifests {
			text, err := os.ReadFile(path)
			ok(t, err)
			f := fixture{name: dir.name + " " + strings.TrimSuffix(filepath.Base(path), ".json"), packed: strings.TrimSuffix(path, "json") + "db.gz"}
			dir.read(t, text, &f)
			all = append(all, f)
		}
	}
	return all
}

// readOriginal reads what make.py says about its file: rows, and what is meant by them.
func readOriginal(t *testing.T, text []byte, f *fixture) {
	t.Helper()
	var m struct {
		Jobs []struct {
			ID, Attempts        int64
			Queue, Note, SHA256 string
			State               queue.State
			Strict              bool
			MaxAttempts         int    `json:"max_attempts"`
			AvailableAt         int64  `json:"available_at"`
			CreatedAt           int64  `json:"created_at"`
			UpdatedAt           int64  `json:"updated_at"`
			LeaseUntil          int64  `json:"lease_until"`
			JobID               string `json:"job_id"`
			LastError           string `json:"last_error"`
			FailureReason       string `json:"failure_reason"`
			Receipt             string
		}
		Tables map[string][]any
		Stats  map[string]struct{ Ready, Processing, Acked, Failed int64 }
	}
	decodeManifest(t, text, &m)
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	for _, j := range m.Jobs {
		r := queue.Record{ID: j.ID, Queue: j.Queue, State: j.State, JobID: j.JobID, Attempts: int(j.Attempts), MaxAttempts: j.MaxAttempts,
			Delivery: j.Attempts, LastError: j.LastError, Receipt: j.Receipt,
			AvailableAt: at(j.AvailableAt), CreatedAt: at(j.CreatedAt), UpdatedAt: at(j.UpdatedAt)}
		if j.State == queue.Leased {
			r.LeaseUntil = at(j.LeaseUntil)
		}
		if j.State == queue.Failed {
			r.Reason = map[string]queue.Reason{"": queue.UnknownReason, "explicit_permanent_failure": queue.Permanent,
				"retries_exhausted": queue.RetriesExhausted}[j.FailureReason]
		}
		f.jobs = append(f.jobs, fixtureJob{Record: r, SHA256: j.SHA256, note: j.Note, strict: j.Strict, expired: j.Queue == "expired"})
	}
	for name, s := range m.Stats {
		f.stats = append(f.stats, queue.Stats{Queue: name, Ready: s.Ready, Processing: s.Processing, Acked: s.Acked, Failed: s.Failed})
	}
	f.original, f.tables = true, m.Tables
}

// releasedManifest is what the role make-fixture says about its file.
type releasedManifest struct {
	Jobs  []fixtureJob
	Stats []queue.Stats
}

func readReleased(t *testing.T, text []byte, f *fixture) {
	t.Helper()
	var m releasedManifest
	decodeManifest(t, text, &m)
	f.jobs, f.stats = m.Jobs, m.Stats
	for i := range f.jobs {
		f.jobs[i].expired, f.jobs[i].strict = f.jobs[i].Record.Queue == "expired", false
	}
}

func decodeManifest(t *testing.T, text []byte, m any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	ok(t, dec.Decode(m))
}

// unpack makes a directory with the file in it.
func (f fixture) unpack(t testing.TB) string {
	t.Helper()
	packed, err := os.Open(f.packed)
	ok(t, err)
	defer func() { _ = packed.Close() }()
	unpacked, err := gzip.NewReader(packed)
	ok(t, err)
	data, err := io.ReadAll(unpacked)
	ok(t, err)
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "localqueue.db"), data, 0o600))
	return dir
}

func (f fixture) queues() (names []string) {
	seen := map[string]bool{}
	for _, j := range f.jobs {
		if !seen[j.Record.Queue] {
			seen[j.Record.Queue] = true
			names = append(names, j.Record.Queue)
		}
	}
	return names
}

func hash(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

func queueOf(t testing.TB, s *queue.Store, name string) *queue.Queue {
	t.Helper()
	q, err := s.Queue(name)
	ok(t, err)
	return q
}

func healthy(t testing.TB, s *queue.Store) {
	t.Helper()
	found, err := s.Check(t.Context(), false)
	ok(t, err)
	same(t, "findings", []queue.Finding(nil), found)
}
