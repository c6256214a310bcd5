package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"testing"
)

// fake is a contender that answers at once.
type fake struct {
	name        string
	unprepared  error
	failing     error
	turns       *[]string
	cancelAfter context.CancelFunc
}

func (f *fake) about() about                  { return about{Name: f.name} }
func (f *fake) prepare(context.Context) error { return f.unprepared }
func (f *fake) run(context.Context, task, string) (measure, error) {
	*f.turns = append(*f.turns, f.name)
	if f.cancelAfter != nil {
		f.cancelAfter()
	}
	return measure{Jobs: 10, Seconds: 1}, f.failing
}

func TestWhatFailsIsLeftOutWithItsReasonAndTheOthersGoOn(t *testing.T) {
	var turns []string
	o := &options{seconds: 1, rounds: 2, works: []string{"put"}, settings: []string{"full"}, dir: t.TempDir()}
	r, err := measureAll(t.Context(), o, []contender{
		&fake{name: "well", turns: &turns},
		&fake{name: "missing", turns: &turns, unprepared: errors.New("not installed")},
		&fake{name: "broken", turns: &turns, failing: errors.New("disk full")},
		&fake{name: "unable", turns: &turns, failing: &absentError{"no such call"}},
	}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"well", "broken", "unable", "broken", "unable", "well"}; !slices.Equal(turns, want) {
		t.Errorf("the turns were %v, want %v", turns, want)
	}
	if r.Peers[1].LeftOut != "not installed" {
		t.Errorf("missing: %+v", r.Peers[1])
	}
	for peer, want := range map[string]cell{"well": {rate: 10}, "broken": {leftOut: "failed: disk full"}, "unable": {leftOut: "no such call"}} {
		if got := r.cell(peer, workPut, settingFull); got != want {
			t.Errorf("%s: %+v, want %+v", peer, got, want)
		}
	}
}

func TestAnInterruptEndsTheRoundsAndLeavesNoQueueBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var turns []string
	o := &options{seconds: 1, rounds: 9, dir: t.TempDir()}
	_, err := measureAll(ctx, o, []contender{&fake{name: "first", turns: &turns, cancelAfter: cancel}}, &bytes.Buffer{})
	if !errors.Is(err, context.Canceled) || len(turns) != 1 {
		t.Errorf("got %v after %d turns", err, len(turns))
	}
	if left, err := os.ReadDir(o.dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
