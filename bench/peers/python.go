package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed python_peers.py
var pythonProgram string

// pythonPeer is a Python package, in a virtual environment of its own, so that one that can't be installed leaves out only itself.
type pythonPeer struct {
	info    about
	pack    string // its name in the registry
	version string
	home    string // of the virtual environment
	python  string // of the environment, once prepared
}

func pythonPeers(build string) []contender {
	peer := func(name, pack, version, driver, ack, differs string) contender {
		return &pythonPeer{
			info: about{Name: name, Version: version, Driver: driver, Ack: ack, Differs: differs},
			pack: pack, version: version, home: filepath.Join(build, "venv-"+pack+"-"+version),
		}
	}
	const python = "Python's sqlite3"
	const original = "leases of 60 s with receipts; through JSON; Python's interpreter is in every figure"
	return []contender{
		peer("python-localqueue-1.0.0", "localqueue", "1.0.0", "bundled, in Rust", "kept, until purged", original),
		peer("python-localqueue-1.4.1", "localqueue", "1.4.1", "bundled, in Rust", "kept, until purged", original),
		peer("persist-queue", "persist-queue", "1.1.0", python, "kept, until cleared",
			"SQLiteAckQueue; pickled; no lease: unacked jobs come again when the queue is opened again, so it is for one process; acked rows are cleared after every 1000 acks, inside the time taken"),
		peer("litequeue", "litequeue", "0.9", python, "kept, until pruned",
			"no lease: a message that was handed out stays locked until somebody calls retry; done ones are pruned after every 1000, inside the time taken"),
		peer("huey", "huey", "3.5.4", python, "deleted when handed out",
			"SqliteHuey; pickled tasks; no lease and no ack: a task that was handed out is gone, whatever becomes of its worker, so get + ack is its dequeue alone"),
	}
}

func (p *pythonPeer) about() about { return p.info }

// prepare makes the virtual environment, or takes the one that is there when it has the right package.
func (p *pythonPeer) prepare(ctx context.Context) error {
	home, err := filepath.Abs(p.home)
	if err != nil {
		return err
	}
	p.python = filepath.Join(home, "bin", "python")
	if p.installed(ctx) {
		return nil
	}
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	if err := output(exec.CommandContext(ctx, "python3", "-m", "venv", home)); err != nil {
		return fmt.Errorf("no virtual environment: %w", err)
	}
	if err := output(exec.CommandContext(ctx, p.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", p.pack+"=="+p.version)); err != nil {
		return fmt.Errorf("pip can't install %s %s: %w", p.pack, p.version, err)
	}
	if !p.installed(ctx) {
		return fmt.Errorf("pip installed something else than %s %s", p.pack, p.version)
	}
	return nil
}

func (p *pythonPeer) installed(ctx context.Context) bool {
	const ask = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
	version, err := exec.CommandContext(ctx, p.python, "-c", ask, p.pack).Output()
	return err == nil && strings.TrimSpace(string(version)) == p.version
}

// output runs a command and puts the last line of what it says into its error.
func output(cmd *exec.Cmd) error {
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, lastLine(text))
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

func (p *pythonPeer) run(ctx context.Context, t task, dir string) (measure, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return measure{}, err
	}
	arg, err := json.Marshal(struct {
		task
		Package string `json:"package"`
		Dir     string `json:"dir"`
		Threads int    `json:"threads"`
	}{t, p.pack, dir, pythonThreads})
	if err != nil {
		return measure{}, err
	}
	cmd := exec.CommandContext(ctx, p.python, "-", string(arg))
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(pythonProgram), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return measure{}, errors.Join(ctx.Err(), fmt.Errorf("%w: %s", err, lastLine(stderr.Bytes())))
	}
	var answer struct {
		measure
		Absent string `json:"absent"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		return measure{}, fmt.Errorf("the answer of the Python program: %w", err)
	}
	if answer.Absent != "" {
		return measure{}, &absentError{answer.Absent}
	}
	return answer.measure, nil
}
