//go:build unix

package bench_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/localqueue/localqueue/bench"
	"github.com/localqueue/localqueue/queue"
)

func TestWhatCantBeMeasuredIsRefusedBeforeAnythingIsCreated(t *testing.T) {
	dir := t.TempDir()
	used := filepath.Join(dir, "used")
	store, err := queue.Open(used)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	contention := []string{"contention"}
	for name, c := range map[string]struct {
		config bench.Config
		says   string
	}{
		"profile":              {bench.Config{Profile: "huge"}, `profile "huge"`},
		"scenario":             {bench.Config{Scenarios: []string{"speed"}}, `scenario "speed"`},
		"no processes":         {bench.Config{Processes: []int{4, 0}}, "processes 0"},
		"many processes":       {bench.Config{Processes: []int{100_000}}, "processes 100000"},
		"negative":             {bench.Config{Goroutines: -1}, "goroutines -1"},
		"tiny payload":         {bench.Config{Payload: 3}, "payload 3"},
		"durability":           {bench.Config{Durability: "some"}, `durability "some"`},
		"two ends":             {bench.Config{Duration: time.Second, Count: 1}, "exclude"},
		"negative duration":    {bench.Config{Duration: -1}, "negative"},
		"half a mix":           {bench.Config{Producers: 1, Scenarios: contention}, "needs both"},
		"mix and processes":    {bench.Config{Producers: 1, Consumers: 1, Processes: []int{1}, Scenarios: contention}, "either"},
		"mix with a count":     {bench.Config{Producers: 1, Consumers: 1, Count: 5, Scenarios: contention}, "duration"},
		"mix of others":        {bench.Config{Producers: 1, Consumers: 1, Scenarios: []string{"batch"}}, "belong"},
		"mix of all":           {bench.Config{Producers: 1, Consumers: 1}, "belong"},
		"pairs of all":         {bench.Config{Pairs: 1}, "belong"},
		"pairs and rounds":     {bench.Config{Pairs: 1, Rounds: 1, Scenarios: contention}, "exclude"},
		"pairs without line":   {bench.Config{Pairs: 1, NoLine: true, Scenarios: contention}, "leave out"},
		"worker with a time":   {bench.Config{Duration: time.Second, Scenarios: []string{"worker"}}, "count"},
		"kill with a count":    {bench.Config{Count: 5, Scenarios: []string{"kill"}}, "duration"},
		"directory is a file":  {bench.Config{Dir: file}, "not a directory"},
		"directory in nothing": {bench.Config{Dir: filepath.Join(dir, "a", "b")}, "there is no"},
		"directory has a file": {bench.Config{Dir: used}, "holds a queue"},
		"no limit":             {bench.Config{Limit: filepath.Join(dir, "none")}, "make limit"},
		"limit without schema": {bench.Config{Limit: file, LimitSQL: dir}, "no migrations"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bench.Run(t.Context(), c.config)
			if !errors.Is(err, bench.ErrConfig) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("the directory holds %v now (%v)", left, err)
	}
}
