package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// measureAll goes through the works and settings; in every round each contender has its turn, so that a slow minute of the
// machine doesn't hit one of them alone. What fails is left out with its reason; only the end of ctx ends it all.
func measureAll(ctx context.Context, o *options, contenders []contender, progress io.Writer) (*results, error) {
	r := &results{Started: time.Now().UTC().Truncate(time.Second), Seconds: o.seconds, Rounds: o.rounds}
	var err error
	if r.Machine, err = lookAround(o.dir); err != nil {
		return nil, err
	}
	var ready []contender
	for _, c := range contenders {
		entry := peerEntry{about: c.about()}
		if err := c.prepare(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			entry.LeftOut = err.Error()
			fmt.Fprintf(progress, "%s is left out: %v\n", entry.Name, err)
		} else {
			ready = append(ready, c)
		}
		r.Peers = append(r.Peers, entry)
	}
	for round := range o.rounds {
		for _, w := range works {
			for _, s := range settings {
				if !wants(o.works, string(w.work)) || !wants(o.settings, string(s)) {
					continue
				}
				for i := range ready {
					c := ready[(i+round)%len(ready)] // another one begins in each round
					run, err := turn(ctx, c, taskFor(w.work, s, o.seconds), o.dir)
					if err != nil {
						return nil, err
					}
					run.Round = round + 1
					r.Runs = append(r.Runs, run)
					fmt.Fprintf(progress, "round %d/%d  %-14s %-12s %-24s %s\n", run.Round, o.rounds, w.work, s, run.Peer, run.summary())
				}
			}
		}
		if o.out != "" { // after each round: what is measured is kept if a later one is interrupted
			if err := r.save(o.out); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// turn is one measurement of one contender, in a directory of its own that is gone afterwards.
func turn(ctx context.Context, c contender, t task, scratch string) (runEntry, error) {
	run := runEntry{Peer: c.about().Name, Work: t.Work, Setting: t.Setting}
	dir, err := os.MkdirTemp(scratch, "queue-")
	if err != nil {
		return run, err
	}
	runtime.GC() // nobody pays for what the one before left behind
	m, err := c.run(ctx, t, dir)
	if gone := os.RemoveAll(dir); gone != nil {
		return run, gone
	}
	if ctx.Err() != nil {
		return run, ctx.Err()
	}
	run.measure = m
	switch {
	case errors.Is(err, errNoWay):
		run.LeftOut = err.Error()
	case err != nil:
		run.LeftOut = "failed: " + err.Error()
	case m.Jobs == 0:
		run.LeftOut = "failed: no job was done in the time"
	}
	return run, nil
}
