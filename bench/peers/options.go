package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// options is what the command line asks for.
type options struct {
	seconds    float64
	rounds     int
	only       []string
	works      []string
	settings   []string
	skipPython bool
	dir        string
	out        string
	markdown   string
}

// errUsage marks a command line that is wrong. Nothing has been made when it is returned.
var errUsage = errors.New("usage")

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

func (o *options) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Float64Var(&o.seconds, "seconds", defaultSeconds, "how long each piece of work is measured, per round")
	f.IntVar(&o.rounds, "rounds", 3, "rounds; in each one every queue has its turn, and the medians count")
	f.StringSliceVar(&o.only, "only", nil, "only these queues beside "+ours+" (names with commas between)")
	f.StringSliceVar(&o.works, "work", nil, "only these kinds of work: "+strings.Join(workNames(), ", "))
	f.StringSliceVar(&o.settings, "setting", nil, "only these settings: normal, full, recommended")
	f.BoolVar(&o.skipPython, "skip-python", false, "leave the Python queues out")
	f.StringVar(&o.dir, "dir", "build", "where the queues and virtual environments are made; a real disk")
	f.StringVar(&o.out, "out", "", "write every measurement to this file, as JSON")
	f.StringVar(&o.markdown, "markdown", "", "write the tables to this file, as Markdown")
}

// check refuses what can't be done, before anything is made.
func (o *options) check(contenders []contender) error {
	if !(o.seconds > 0) || o.seconds > 3600 {
		return usage("--seconds %v: must be above 0 and at most 3600", o.seconds)
	}
	if o.rounds < 1 || o.rounds > 1000 {
		return usage("--rounds %d: must be from 1 to 1000", o.rounds)
	}
	var names, settingNames []string
	for _, c := range contenders {
		names = append(names, c.about().Name)
	}
	for _, s := range settings {
		settingNames = append(settingNames, string(s))
	}
	if err := known("--only", o.only, names); err != nil {
		return err
	}
	if err := known("--work", o.works, workNames()); err != nil {
		return err
	}
	if err := known("--setting", o.settings, settingNames); err != nil {
		return err
	}
	for flag, path := range map[string]string{"--out": o.out, "--markdown": o.markdown} {
		if info, err := os.Stat(path); path != "" && err == nil && info.IsDir() {
			return usage("%s %s: is a directory, must be a file", flag, path)
		}
	}
	if info, err := os.Stat(o.dir); err == nil && !info.IsDir() {
		return usage("--dir %s: is a file, must be a directory", o.dir)
	}
	if inMemory(existing(o.dir)) {
		return usage("--dir %s: is in memory (tmpfs), where a sync costs nothing; choose a directory on a disk", o.dir)
	}
	return nil
}

// existing is the directory itself, or the nearest above it that is there.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func known(flag string, given, all []string) error {
	for _, name := range given {
		if !slices.Contains(all, name) {
			return usage("%s %q: must be among %s", flag, name, strings.Join(all, ", "))
		}
	}
	return nil
}

func workNames() (names []string) {
	for _, w := range works {
		names = append(names, string(w.work))
	}
	return names
}

// wants tells whether a name is chosen by a list in which nothing stands for everything.
func wants(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }
