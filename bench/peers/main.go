// Peers measures localqueue and other queues that live in one SQLite file, on the same work, the same disk and in turns.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
	}
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		return 2
	default:
		return 1
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	cmd := &cobra.Command{
		Use:           "peers",
		Short:         "measure localqueue and other SQLite queues on the same work, in turns",
		Args:          func(_ *cobra.Command, args []string) error { return noArguments(args) },
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return compare(cmd.Context(), &o, stdout, stderr) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%v", err) })
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetArgs(args)
	o.flags(cmd)
	return cmd.ExecuteContext(ctx)
}

func noArguments(args []string) error {
	if len(args) > 0 {
		return usage("%q: there are only flags, no arguments", args[0])
	}
	return nil
}

// compare measures, prints the tables, and writes the files asked for.
func compare(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	contenders := allContenders(o.dir)
	if err := o.check(contenders); err != nil {
		return err
	}
	for _, f := range []struct{ flag, path string }{{"--out", o.out}, {"--markdown", o.markdown}} {
		if err := writable(f.path); err != nil {
			return usage("%s: %v", f.flag, err)
		}
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return usage("--dir: %v", err)
	}
	r, err := measureAll(ctx, o, chosen(o, contenders), stderr)
	if err != nil {
		return err
	}
	text := r.markdown()
	_, err = io.WriteString(stdout, text)
	if o.markdown != "" {
		err = errors.Join(err, os.WriteFile(o.markdown, []byte(text), 0o644))
	}
	return err
}

// writable makes sure, before an hour of measuring, that its results can be written. It doesn't touch what is in the file.
func writable(path string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

func allContenders(build string) []contender {
	return append(goPeers(), pythonPeers(build)...)
}

func goPeers() []contender {
	return []contender{
		localqueue(), localqueueBytes(), newGoqite(),
		riverPeer("river", moderncDriver), riverPeer("river-mattn", mattnDriver), newBacklite(),
	}
}

// chosen are the contenders asked for. Ours is always there: without it there is nothing to compare with.
func chosen(o *options, all []contender) []contender {
	return slices.DeleteFunc(slices.Clone(all), func(c contender) bool {
		name := c.about().Name
		_, python := c.(*pythonPeer)
		return name != ours && (!wants(o.only, name) || python && o.skipPython)
	})
}
