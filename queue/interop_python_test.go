package queue_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// installOriginal installs a version of the package for python3 and returns where.
func installOriginal(t *testing.T, version string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: it installs the Python package localqueue " + version)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("left out: there is no python3")
	}
	target := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary", ":all:",
		"--no-compile", "--retries", "1", "--timeout", "10", "--target", target}
	if wheels := os.Getenv("LOCALQUEUE_PYTHON_WHEELS"); wheels != "" {
		args = append(args, "--no-index", "--find-links", wheels)
	}
	if out, err := exec.CommandContext(ctx, python, append(args, "localqueue=="+version)...).CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Skipf("left out: the Python package localqueue %s can't be installed: %v: %s", version, err, lines[len(lines)-1])
	}
	return target
}

// python is a process with the package, which obeys.
type python struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs bytes.Buffer
}

func startPython(t *testing.T, installed, dir string) *python {
	t.Helper()
	p := &python{t: t, cmd: exec.Command("python3", filepath.Join("testdata", "original", "obey.py"), dir)}
	p.cmd.Env = append(os.Environ(), "PYTHONPATH="+installed, "PYTHONDONTWRITEBYTECODE=1")
	p.cmd.Stderr = &p.errs
	in, err := p.cmd.StdinPipe()
	ok(t, err)
	out, err := p.cmd.StdoutPipe()
	ok(t, err)
	p.in, p.out = in, bufio.NewReader(out)
	ok(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil { // the test has failed
			p.kill()
		}
	})
	return p
}

// stop lets the process end as a program does.
func (p *python) stop() {
	p.t.Helper()
	ok(p.t, p.in.Close())
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("python: %v\n%s", err, p.errs.String())
	}
}

// kill leaves what a crash leaves: the WAL, and leases.
func (p *python) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

type doing map[string]any

// does has the package do something and returns its answer as JSON; answers begins with "error " if it raised one.
func (p *python) does(what string, args doing) string {
	p.t.Helper()
	line := doing{"what": what}
	for k, v := range args {
		line[k] = v
	}
	text, err := json.Marshal(line)
	ok(p.t, err)
	_, err = fmt.Fprintf(p.in, "%s\n", text)
	ok(p.t, err)
	read := inBackground(func() ([]byte, error) { return p.out.ReadBytes('\n') })
	answer, err := read.await(p.t)
	if err != nil {
		p.kill()
		p.t.Fatalf("python is gone: %v\n%s", err, p.errs.String())
	}
	var a struct {
		OK    json.RawMessage
		Error string
	}
	ok(p.t, json.Unmarshal(answer, &a))
	if a.Error != "" {
		return "error " + a.Error
	}
	return string(a.OK)
}

func (p *python) expect(want, what string, args doing) {
	p.t.Helper()
	same(p.t, "python: "+what, want, p.does(what, args))
}

// pythonJob is what a get of the package answers. Attempts count from 0 there.
func pythonJob(id int64, data string, attempts int) string {
	return fmt.Sprintf(`{"id": %d, "data": %s, "attempts": %d}`, id, data, attempts)
}

// agreesWith compares the two programs' counts.
func (p *python) agreesWith(st queue.Stats) {
	p.t.Helper()
	p.expect(fmt.Sprintf(`{"ready": %d, "processing": %d, "acked": %d, "failed": %d}`, st.Ready, st.Processing, st.Acked, st.Failed), "stats", nil)
}
