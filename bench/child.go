//go:build unix

package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// How parent and child talk. The parent writes lines to the child's standard input: the task in JSON, "go" with the
// instant of the start. It leaves the pipe open: when it closes, the parent is gone, and the child leaves at once.
// The child answers with messages in JSON on descriptor 3; its standard error is the parent's.

// answersFD is where a child writes its messages.
const answersFD = 3

// Child plays the part of one process of a run and returns its exit code. A program that calls [Run] must call it when it
// is started with [Config.Command]; nothing else may use standard input or descriptor 3 then.
func Child() int {
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP) // a terminal sends them to us too: it is the parent who decides
	answers := os.NewFile(answersFD, "answers")
	if info, err := answers.Stat(); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		_, _ = fmt.Fprintln(os.Stderr, "localqueue bench: this process is started by a benchmark, not by hand")
		return 2
	}
	out, failure := playTask(os.Stdin, json.NewEncoder(answers))
	if failure != nil {
		out.Error = failure.Error()
	}
	if err := json.NewEncoder(answers).Encode(message{Outcome: &out}); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "localqueue bench: the parent doesn't listen:", err)
		return 1
	}
	if failure != nil {
		return 1
	}
	return 0
}

// playTask reads the task, gets ready, waits for the start, and works.
func playTask(in io.Reader, answers *json.Encoder) (out outcome, err error) {
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return out, fmt.Errorf("no task came: %w", err)
	}
	var t task
	if err := json.Unmarshal(first, &t); err != nil {
		return out, fmt.Errorf("the task can't be read: %w", err)
	}
	started := listen(lines)
	store, err := queue.Open(t.Dir, append(t.options(), queue.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		return out, err
	}
	j, err := openJournal(t.Journal, t.AtOnce)
	if err != nil {
		return out, errors.Join(err, store.Close())
	}
	defer func() { err = errors.Join(err, j.close(), store.Close()) }()
	if err := answers.Encode(message{Ready: true}); err != nil {
		return out, fmt.Errorf("the parent doesn't listen: %w", err)
	}
	start := <-started
	time.Sleep(time.Duration(start - monotonic()))
	p := newPart(&t, store.Default(), j, start)
	return p.play()
}

// listen reads from the parent the instant to start at, and notices when it is gone.
func listen(lines *bufio.Reader) <-chan int64 {
	started := make(chan int64, 1)
	go func() {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				os.Exit(1) // the parent is gone: whatever this process does is for nobody
			}
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "go "); ok {
				at, _ := strconv.ParseInt(rest, 10, 64) // written by the same program
				started <- at
			}
		}
	}()
	return started
}
