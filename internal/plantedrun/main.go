// Command plantedrun breaks the product on purpose, one planted fault at a time, and demands that the test suites notice:
// a harness counts only once it has failed on what it is there to catch. Run it at the root of the module (make faults).
//
// The packages' test binaries are built with the tag planted, which makes the engine obey LOCALQUEUE_FAULT (see
// queue/planted_faults.go). table.go says which suite must catch which fault. Each suite must pass without a fault first.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	only := flag.String("run", "", "run only the pairs whose suite/fault matches this regular expression")
	jobs := flag.Int("j", 2, "pairs to run at a time")
	limit := flag.Duration("timeout", 90*time.Second, "for one suite; running out of it is no catch")
	verbose := flag.Bool("v", false, "print what the suites print")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err == nil {
		r := &runner{out: os.Stdout, match: match, jobs: *jobs, limit: *limit, verbose: *verbose}
		err = r.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plantedrun:", err)
		os.Exit(1)
	}
}

type runner struct {
	out     io.Writer
	match   *regexp.Regexp
	jobs    int
	limit   time.Duration
	verbose bool

	mu      sync.Mutex // of out
	scratch string
	bins    map[string]string // by package
}

func (r *runner) run(ctx context.Context) (err error) {
	for _, source := range []string{"queue/planted_faults.go", "bench/planted_faults.go"} {
		if err := inTable(source); err != nil {
			return err
		}
	}
	var chosen []pair
	for _, p := range pairs {
		if r.match.MatchString(p.suite + "/" + p.fault) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return errors.New("no pair of the table matches")
	}
	if r.scratch, err = os.MkdirTemp("", "localqueue-faults-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.scratch)) }()

	start := time.Now()
	if err := r.build(ctx, chosen); err != nil {
		return err
	}
	// One at a time: a suite's own time limits count here.
	for _, s := range suites {
		if !slices.ContainsFunc(chosen, func(p pair) bool { return p.suite == s.name }) {
			continue
		}
		res := r.start(ctx, s, "", s.run)
		r.tell("passes", "FAILS", res.exit == 0 && res.ran, s.name, "(no fault)", res)
		if res.exit != 0 || !res.ran {
			return fmt.Errorf("the suite %s doesn't pass without a fault; its failures would prove nothing", s.name)
		}
	}
	missed := r.pairs(ctx, chosen)
	_, err = fmt.Fprintf(r.out, "%d of %d caught in %v\n", len(chosen)-len(missed), len(chosen), time.Since(start).Round(time.Second))
	if len(missed) > 0 {
		return fmt.Errorf("not caught: %s", strings.Join(missed, ", "))
	}
	return err
}

// pairs runs the pairs, a few at a time, and returns those that weren't caught.
func (r *runner) pairs(ctx context.Context, chosen []pair) (missed []string) {
	var all sync.WaitGroup
	slots := make(chan struct{}, max(1, r.jobs))
	for _, p := range chosen {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			s, _ := suiteOf(p)
			res := r.start(ctx, s, p.fault, cmp.Or(p.run, s.run))
			if !r.tell("caught", "MISSED", res.exit != 0 && res.failed != "", s.name, p.fault, res) {
				r.mu.Lock()
				missed = append(missed, p.suite+"/"+p.fault)
				r.mu.Unlock()
			}
		})
	}
	all.Wait()
	return missed
}

func suiteOf(p pair) (suite, bool) {
	i := slices.IndexFunc(suites, func(s suite) bool { return s.name == p.suite })
	if i < 0 {
		return suite{}, false
	}
	return suites[i], true
}

// build makes one test binary per package.
func (r *runner) build(ctx context.Context, chosen []pair) error {
	r.bins = map[string]string{}
	for _, s := range suites {
		used := slices.ContainsFunc(chosen, func(p pair) bool { return p.suite == s.name })
		if r.bins[s.pkg] != "" || !used {
			continue
		}
		bin, err := filepath.Abs(filepath.Join("build", filepath.Base(s.pkg)+".planted.test"))
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "planted", "-o", bin, "./"+s.pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build the tests of %s: %w\n%s", s.pkg, err, out)
		}
		r.bins[s.pkg] = bin
	}
	return nil
}

// result is what became of a suite.
type result struct {
	exit   int
	ran    bool   // any test ran at all
	failed string // a test that failed and said why; "" if there is none
	took   time.Duration
	output []byte
}

// A test that failed by itself says where. One that was stopped by a panic, or by the time limit, is no catch.
var failure = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+) .*\n +\S+_test\.go:\d+: (.*)$`)

// start runs a suite's test binary in its package's directory, as go test does.
func (r *runner) start(ctx context.Context, s suite, fault, run string) (res result) {
	start := time.Now()
	defer func() { res.took = time.Since(start) }()
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	args := append([]string{"-test.run=" + run, "-test.failfast", "-test.parallel=" + fmt.Sprint(max(2, runtime.NumCPU()))}, s.args...)
	cmd := exec.CommandContext(ctx, r.bins[s.pkg], args...)
	cmd.Dir = s.pkg
	cmd.Env = append(append(os.Environ(), s.env...), "TMPDIR="+r.scratch, "LOCALQUEUE_FAULT="+fault)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// The suite starts processes of its own: end them with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		res.exit = max(1, cmd.ProcessState.ExitCode())
		fmt.Fprintf(&output, "%v\n", err)
	}
	res.output = output.Bytes()
	res.ran = !bytes.Contains(res.output, []byte("no tests to run"))
	res.failed = failed(res.output)
	return res
}

func failed(output []byte) string {
	for _, m := range failure.FindAllSubmatch(output, -1) {
		if !bytes.HasPrefix(m[2], []byte("[rapid] panic")) {
			return string(m[1])
		}
	}
	return ""
}

// tell prints a line about a suite, and its output where it isn't as it should be.
func (r *runner) tell(good, bad string, ok bool, suite, fault string, res result) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	word := good
	if !ok {
		word = bad
	}
	fmt.Fprintf(r.out, "%-7s %-12s %-22s exit %d %6.1fs  %s\n", word, suite, fault, res.exit, res.took.Seconds(), res.failed)
	if !ok || r.verbose {
		fmt.Fprintf(r.out, "%s\n", tail(res.output, 60))
	}
	return ok
}

func tail(text []byte, n int) []byte {
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}

// inTable tells whether each fault that the engine knows has a suite that must catch it.
func inTable(source string) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("%w; run this at the root of the module", err)
	}
	var missing []string
	for _, m := range regexp.MustCompile(`(?m)^\t"([a-z-]+)", +//`).FindAllSubmatch(text, -1) {
		if fault := string(m[1]); !slices.ContainsFunc(pairs, func(p pair) bool { return p.fault == fault }) {
			missing = append(missing, fault)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no suite of the table is to catch %s", strings.Join(missing, ", "))
	}
	return nil
}
