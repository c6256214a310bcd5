//go:build unix

// Command localqueue puts, works and looks after the jobs of a localqueue directory.
package main

import (
	"context"
	"os"
	"os/exec"

	"golang.org/x/term"
)

func main() {
	s := catchSignals()
	a := &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		inTerminal: isTerminal(os.Stdin), outTerminal: isTerminal(os.Stdout), errTerminal: isTerminal(os.Stderr),
		getenv: os.Getenv, environ: os.Environ, lookPath: exec.LookPath, signals: s,
	}
	os.Exit(s.exit(run(s.context(context.Background()), a, os.Args[1:])))
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
