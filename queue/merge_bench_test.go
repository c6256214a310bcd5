package queue

import (
	"context"
	"fmt"

	"testing"
	"time"
)

// From how many calls on is one statement for all cheaper than one for each? See the thresholds in merge.go.
func BenchmarkMerge(b *testing.B) {
	ctx := context.Background()
	payload := make([]byte, 128)
	for _, k := range []int{1, 2, 3, 4, 6, 8, 16} {
		for _, together := range []bool{false, true} {
			how := "each"
			if together {
				how = "together"
			}
			b.Run(fmt.Sprintf("%d/%s", k, how), func(b *testing.B) {
				s, err := Open(b.TempDir(), WithDurability(Normal))
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = s.Close() }()
				q := s.Default()
				spec, err := q.spec(payload, nil)
				if err != nil {
					b.Fatal(err)
				}
				specs := make([]*putSpec, k)
				for i := range specs {
					specs[i] = spec
				}
				step := func(run func(t *txn) error) {
					if err := s.write(ctx, &op{alone: true, run: run}); err != nil {
						b.Fatal(err)
					}
				}
				var jobs []*Job
				var took [3]int64
				measure := func(i int, run func(t *txn) error) {
					start := int64(time.Since(started))
					step(run)
					took[i] += int64(time.Since(started)) - start
				}
				for b.Loop() {
					measure(0, func(t *txn) (err error) {
						if together {
							_, _, err = q.putMany(t, specs)
							return err
						}
						for _, spec := range specs {
							if _, err = q.put(t, spec); err != nil {
								return err
							}
						}
						return nil
					})
					jobs = jobs[:0]
					measure(1, func(t *txn) error {
						if together {
							got, err := q.claimIn(t, max(k, 2))
							jobs = append(jobs, got...)
							return err
						}
						for range k {
							got, err := q.claimIn(t, 1)
							if err != nil {
								return err
							}
							jobs = append(jobs, got...)
						}
						return nil
					})
					measure(2, func(t *txn) error {
						if together {
							refs := make([]Ref, len(jobs))
							for i, j := range jobs {
								refs[i] = j.Ref()
							}
							_, err := q.ackRefs(t, refs)
							return err
						}
						for _, j := range jobs {
							if err := q.ack(t, j.ID, j.Receipt); err != nil {
								return err
							}
						}
						return nil
					})
				}
				for i, what := range []string{"put", "claim", "ack"} {
					b.ReportMetric(float64(took[i])/float64(b.N*k)/1000, "us/"+what)
				}
			})
		}
	}
}

var started = time.Now()
