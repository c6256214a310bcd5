package queue

import (
	"context"
	"fmt"

	"github.com/localqueue/localqueue/db/sqlite"
)

// Finding is something wrong with the file.
type Finding struct {
	Queue string // "" if it concerns the file
	ID    int64  // the job; 0 if it concerns none
	Text  string
}

// maxFindings bounds each kind of finding.
const maxFindings = 100

// Check examines the file: SQLite's own integrity check (quick leaves out what compares indexes with their tables), and the
// invariants of the state machine. No findings means healthy. Other work goes on meanwhile.
func (s *Store) Check(ctx context.Context, quick bool) (found []Finding, err error) {
	pragma := "PRAGMA integrity_check(100)"
	if quick {
		pragma = "PRAGMA quick_check(100)"
	}
	if found, err = s.checkPages(ctx, pragma); err == nil {
		err = s.view(ctx, func(r *sqlite.Queries) error {
			more, err := invariants(ctx, r)
			found = append(found, more...)
			return err
		})
	}
	if err != nil {
		return found, fmt.Errorf("check of %s: %w", s.dir, err)
	}
	return found, nil
}

func (s *Store) checkPages(ctx context.Context, pragma string) (found []Finding, err error) {
	select {
	case <-s.closing:
		return nil, ErrClosed
	default:
	}
	rows, err := s.reader.QueryContext(ctx, pragma)
	if err != nil {
		return nil, s.readError(ctx, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return found, err
		}
		if text != "ok" {
			found = append(found, Finding{Text: text})
		}
	}
	return found, s.readError(ctx, rows.Err())
}

func invariants(ctx context.Context, r *sqlite.Queries) (found []Finding, err error) {
	counted, err := r.CountStates(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := r.Counters(ctx)
	if err != nil {
		return nil, err
	}
	real := map[string]sqlite.CountersRow{}
	for _, c := range counted {
		real[c.Queue] = sqlite.CountersRow{Name: c.Queue, Ready: c.Ready, Delayed: c.Delayed, Leased: c.Leased, Acked: c.Acked, Failed: c.Failed}
	}
	for _, k := range kept {
		want, ok := real[k.Name]
		if !ok {
			want.Name = k.Name
		}
		if k != want {
			found = append(found, Finding{Queue: k.Name, Text: fmt.Sprintf("the counters say %+v, the rows are %+v", k, want)})
		}
		delete(real, k.Name)
	}
	for name := range real {
		found = append(found, Finding{Queue: name, Text: "has jobs but no counters"})
	}
	jobs, err := r.ImpossibleJobs(ctx, maxFindings)
	if err != nil {
		return found, err
	}
	for _, j := range jobs {
		found = append(found, Finding{Queue: j.Queue, ID: j.ID, Text: j.Finding})
	}
	orphans, err := r.Orphans(ctx, maxFindings)
	if err != nil {
		return found, err
	}
	for _, o := range orphans {
		found = append(found, Finding{ID: o.MessageID, Text: "a " + o.Kind + " row is left of a job that is gone"})
	}
	return found, nil
}
