//go:build unix

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/localqueue/localqueue/queue"
)

// Limit is what the C program made of the same work, in jobs a second, by work and durability, such as "put, normal".
type Limit struct {
	PerSecond map[string]float64   `json:"per_second"` // the medians
	Values    map[string][]float64 `json:"values"`     // of each round
}

// measure runs the C program on files of its own.
func (l *Limit) measure(ctx context.Context, c *Config, s *scratch) error {
	n := max(1000, profiles[c.Profile].single)
	for _, d := range []queue.Durability{queue.Normal, queue.Full} {
		path := filepath.Join(s.dir, fmt.Sprintf("limit-%d.db", s.next()))
		cmd := exec.CommandContext(ctx, c.Limit, c.LimitSQL, path, strconv.Itoa(n), string(d))
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("the limit program %s: %w: %s", c.Limit, err, strings.TrimSpace(said.String()))
		}
		if err := l.read(out); err != nil {
			return fmt.Errorf("the limit program %s: %w", c.Limit, err)
		}
	}
	return nil
}

func (l *Limit) read(out []byte) error {
	in := json.NewDecoder(bytes.NewReader(out))
	for lines := 0; ; lines++ {
		var line struct {
			Work       string  `json:"work"`
			Durability string  `json:"durability"`
			PerSecond  float64 `json:"per_second"`
		}
		if err := in.Decode(&line); errors.Is(err, io.EOF) && lines > 0 {
			return nil
		} else if errors.Is(err, io.EOF) {
			return errors.New("it printed no figures; build it with make limit")
		} else if err != nil {
			return err
		}
		work := line.Work + ", " + line.Durability
		l.Values[work] = append(l.Values[work], line.PerSecond)
		l.PerSecond[work] = median(l.Values[work])
	}
}
