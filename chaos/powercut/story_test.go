package powercut

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/localqueue/localqueue/chaos/preload"
	"github.com/localqueue/localqueue/queue"
)

func marked(t *testing.T, notes ...Note) (records []preload.Record) {
	t.Helper()
	for _, n := range notes {
		text, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, preload.Record{Kind: preload.Mark, Data: text})
	}
	return records
}

// The story: jobs a and b are put at once (asked for at 0, answered at 1), a is claimed (2, 3), nacked (4, 7) and claimed
// again (5, 6): who got it heard so before the one who nacked it. It is acked (8, 9), and c is put with that. b is purged
// (10, 11), in whatever state that was.
func story(t *testing.T) *Story {
	t.Helper()
	first, second := Status{queue.Leased, 1}, Status{queue.Leased, 2}
	s, err := ReadStory(marked(t,
		Note{Op: "1", Verb: Put}, Note{Op: "1", Done: true, Moves: []Move{put("a"), put("b")}},
		Note{Op: "2", Verb: Claim}, Note{Op: "2", Done: true, Moves: []Move{{"a", first, 1, 0}}},
		Note{Op: "3", Verb: Nack}, Note{Op: "4", Verb: Claim},
		Note{Op: "4", Done: true, Moves: []Move{{"a", second, 2, 0}}}, Note{Op: "3", Done: true, Moves: []Move{{"a", Status{queue.Ready, 1}, 1, 1}}},
		Note{Op: "5", Verb: AckWith}, Note{Op: "5", Done: true, Moves: []Move{{"a", Status{queue.Acked, 2}, 2, 1}, put("c")}},
		Note{Op: "6", Verb: Purge}, Note{Op: "6", Done: true, Moves: []Move{{"b", Status{}, 0, 2}}}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnImageIsHeldAgainstTheStory(t *testing.T) {
	ready, none := Status{State: queue.Ready}, map[string]Status{}
	leased1, ready1, leased2, acked2 := Status{queue.Leased, 1}, Status{queue.Ready, 1}, Status{queue.Leased, 2}, Status{queue.Acked, 2}
	full, balanced, normal := queue.Full, queue.Balanced, queue.Normal
	for name, c := range map[string]struct {
		mode queue.Durability
		cut  int
		seen map[string]Status
		want string // what the violation says; "" if there is none
	}{
		"a put that was not asked for":       {full, 0, map[string]Status{"a": ready, "b": ready}, "which it never was"},
		"a put without its answer":           {full, 1, none, ""},
		"a put without its answer, there":    {full, 1, map[string]Status{"a": ready, "b": ready}, ""},
		"half of it":                         {normal, 1, map[string]Status{"a": ready}, "half of \"put\""},
		"a put lost":                         {full, 2, none, "put of job"},
		"a put lost, balanced":               {balanced, 2, none, "put of job"},
		"a put lost, normal":                 {normal, 2, none, ""},
		"a claim lost":                       {full, 4, map[string]Status{"a": ready, "b": ready}, "claim of job a"},
		"a claim lost, balanced":             {balanced, 4, map[string]Status{"a": ready, "b": ready}, ""},
		"a claim before its put":             {normal, 4, map[string]Status{"a": leased1}, "half of \"put\""},
		"a nack lost":                        {balanced, 8, map[string]Status{"a": leased1, "b": ready}, "nack of job a"},
		"a claim lost after the nack":        {balanced, 8, map[string]Status{"a": ready1, "b": ready}, ""},
		"the nack not yet answered":          {full, 6, map[string]Status{"a": leased1, "b": ready}, ""},
		"its claim answered before it":       {full, 8, map[string]Status{"a": leased2, "b": ready}, ""},
		"an ack without its follow-up":       {full, 9, map[string]Status{"a": acked2, "b": ready}, "half of \"ack with\""},
		"an ack with its follow-up":          {full, 10, map[string]Status{"a": acked2, "b": ready, "c": ready}, ""},
		"a later commit, not an earlier one": {normal, 10, map[string]Status{"c": ready, "a": acked2}, "a later"},
		"the purge, not yet answered":        {full, 11, map[string]Status{"a": acked2, "c": ready}, ""},
		"the purge, not yet there":           {full, 11, map[string]Status{"a": acked2, "b": ready, "c": ready}, ""},
		"the purge lost":                     {balanced, 12, map[string]Status{"a": acked2, "b": ready, "c": ready}, "purge of job b"},
		"the purge, before it was asked for": {full, 10, map[string]Status{"a": acked2, "c": ready}, "put of job b"},
		"a status of its own":                {normal, 10, map[string]Status{"a": {queue.Failed, 2}, "b": ready, "c": ready}, "which it never was"},
		"a job of nobody":                    {normal, 10, map[string]Status{"z": ready}, "was never put"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(story(t).Compare(c.mode, c.cut, c.seen).Violations, "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("violations: %q, not %q", got, c.want)
			}
		})
	}
}

func TestAReportCountsPromisesAndLosses(t *testing.T) {
	seen := map[string]Status{"a": {State: queue.Ready}, "b": {State: queue.Ready}}
	for mode, want := range map[queue.Durability]Report{
		queue.Balanced: {Promised: 1, Lost: 1}, // the put, and the claim
		queue.Normal:   {Promised: 0, Lost: 1},
	} {
		if diff := cmp.Diff(want, story(t).Compare(mode, 4, seen)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

func TestCutsAreThoseOfTheirSeed(t *testing.T) {
	records := make([]preload.Record, 1000)
	records[500] = created("f", 1)
	var answers []int
	for at := 10; at < 1000; at += 10 {
		answers = append(answers, at)
	}
	cuts := Cuts(records, answers, 40, 3)
	if diff := cmp.Diff(cuts, Cuts(records, answers, 40, 3)); diff != "" {
		t.Errorf("the same seed: %s", diff)
	}
	if cmp.Equal(cuts, Cuts(records, answers, 40, 4)) {
		t.Error("another seed makes the same cuts")
	}
	count := map[Way]int{}
	near, last := 0, 0
	for _, c := range cuts {
		if count[c.Way]++; c.At < last || c.At > len(records) {
			t.Fatalf("cuts at %d and %d of %d", last, c.At, len(records))
		}
		if last = c.At; c.Way != Nothing && c.Way != Everything && c.At >= 500 && c.At < 504 {
			near++
		}
	}
	if count[Nothing] != count[Everything] || count[Nothing] < 20 || near < 20 || len(cuts) < 80 {
		t.Errorf("%v, %d near where something turns", count, near)
	}
	if all := Cuts(records, answers, 1000, 3); len(all) != 2*len(answers)+1000 {
		t.Errorf("a thousand images cover not all %d answers: %d", len(answers), len(all))
	}
}
