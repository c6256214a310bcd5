//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// verbs runs the command's reading verbs, one after the other, until it is told to end.
type verbs struct {
	cancel context.CancelFunc
	ended  chan struct{}
	counts map[string]int // of runs, by verb
}

// readingVerbs, and the exit codes that are no failure: 3 says that no job is ready, 7 that the job is gone by now.
var readingVerbs = []struct {
	args []string
	ok   []int
}{
	{[]string{"stats", "--json"}, nil},
	{[]string{"queues"}, nil},
	{[]string{"list", "--limit", "50"}, nil},
	{[]string{"list", "--json", "--state", "failed"}, nil},
	{[]string{"show", "1"}, []int{7}},
	{[]string{"peek"}, []int{3}},
	{[]string{"check", "--quick"}, nil},
	{[]string{"doctor"}, nil},
	{[]string{"export"}, nil},
}

// startVerbs starts them on the queue in dir. Without a command there is nothing to run.
func startVerbs(t *testing.T, dir string) *verbs {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v := &verbs{cancel: cancel, ended: make(chan struct{}), counts: map[string]int{}}
	bin := os.Getenv("LOCALQUEUE_BIN")
	if bin == "" {
		close(v.ended)
		return v
	}
	go func() {
		defer close(v.ended)
		for i := 0; ctx.Err() == nil; i++ {
			verb := readingVerbs[i%len(readingVerbs)]
			cmd := exec.CommandContext(ctx, bin, append(verb.args, "--dir", dir, "--queue", []string{bare, brief, typed}[i%3])...)
			var said strings.Builder
			cmd.Stderr = &said
			if verb.args[0] == "doctor" { // its findings are its results
				cmd.Stdout = &said
			}
			err := cmd.Run()
			var exit *exec.ExitError
			if errors.As(err, &exit) && slices.Contains(verb.ok, exit.ExitCode()) {
				err = nil
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("localqueue %s: %v\n%s", strings.Join(verb.args, " "), err, said.String())
				return
			}
			v.counts[verb.args[0]]++
		}
	}()
	return v
}

func (v *verbs) end() {
	v.cancel()
	<-v.ended
}

func (v *verbs) String() string {
	if len(v.counts) == 0 {
		return "without the command (LOCALQUEUE_BIN)\n"
	}
	return fmt.Sprintf("the command's verbs: %v\n", v.counts)
}
