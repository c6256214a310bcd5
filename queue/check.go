package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

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
// invariants of the state machine, these in one snapshot. No findings means healthy; there are at most 100 of each kind.
// Damage that keeps the check from going on is a finding too. Other work goes on meanwhile, and an end of ctx ends it.
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
	if errors.Is(err, ErrCorrupt) {
		return append(found, Finding{Text: fmt.Sprintf("the check can't go on: %v", err)}), nil
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
			return found, s.readError(ctx, err)
		}
		for line := range strings.Lines(text) { // a row may hold a heading and many findings
			line = strings.TrimSpace(line)
			if line != "ok" && !strings.HasPrefix(line, "***") && len(found) < maxFindings {
				found = append(found, Finding{Text: line})
			}
		}
	}
	return found, s.readError(ctx, rows.Err())
}

// invariants are what holds of every file that only this engine, the original and the triggers have written.
func invariants(ctx context.Context, r *sqlite.Queries) (found []Finding, err error) {
	for _, look := range []func(context.Context, *sqlite.Queries) ([]Finding, error){
		missingObjects, wrongCounters, impossibleJobs, doubleKeys, wrongSideRows, wrongHistory, wrongSequence,
	} {
		more, err := look(ctx, r)
		if found = append(found, more...); err != nil {
			return found, err
		}
	}
	return found, nil
}

// missingObjects are the tables, indexes, triggers and views of the schema that somebody has dropped.
func missingObjects(ctx context.Context, r *sqlite.Queries) (found []Finding, err error) {
	want, err := schemaObjects()
	if err != nil {
		return nil, err
	}
	there, err := r.SchemaObjects(ctx)
	if err != nil {
		return nil, err
	}
	has := map[sqlite.SqliteSchema]bool{}
	for _, o := range there {
		has[o] = true
	}
	for _, o := range want {
		if !has[o] && !strings.HasPrefix(o.Name, "sqlite_") {
			found = append(found, Finding{Text: fmt.Sprintf("the %s %s is missing: another program has dropped it", o.Type, o.Name)})
		}
	}
	return found, nil
}

// schemaObjects is what the migrations make of an empty file.
var schemaObjects = sync.OnceValues(func() ([]sqlite.SqliteSchema, error) {
	ctx := context.Background()
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	p, err := provider(db)
	if err != nil {
		return nil, err
	}
	if _, err := p.Up(ctx); err != nil {
		return nil, err
	}
	return sqlite.New(db).SchemaObjects(ctx)
})

func wrongCounters(ctx context.Context, r *sqlite.Queries) (found []Finding, err error) {
	counted, err := r.CountStates(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := r.Counters(ctx)
	if err != nil {
		return nil, err
	}
	real := map[string]sqlite.CountStatesRow{}
	for _, c := range counted {
		real[c.Queue] = c
	}
	for _, k := range kept {
		c := real[k.Name]
		delete(real, k.Name)
		var wrong []string
		for _, n := range []struct {
			state      string
			says, rows int64
		}{{"ready", k.Ready, c.Ready}, {"delayed", k.Delayed, c.Delayed}, {"leased", k.Leased, c.Leased}, {"acked", k.Acked, c.Acked}, {"failed", k.Failed, c.Failed}} {
			if n.says != n.rows {
				wrong = append(wrong, fmt.Sprintf("the counters say %d %s, the rows are %d", n.says, n.state, n.rows))
			}
		}
		if len(wrong) > 0 && len(found) < maxFindings {
			found = append(found, Finding{Queue: k.Name, Text: strings.Join(wrong, "; ")})
		}
	}
	for name := range real {
		if len(found) < maxFindings {
			found = append(found, Finding{Queue: name, Text: "has jobs but no counters"})
		}
	}
	return found, nil
}

func impossibleJobs(ctx context.Context, r *sqlite.Queries) (found []Finding, err error) {
	jobs, err := r.ImpossibleJobs(ctx, maxFindings)
	for _, j := range jobs {
		found = append(found, Finding{Queue: j.Queue, ID: j.ID, Text: j.Finding})
	}
	return found, err
}

func doubleKeys(ctx context.Context, r *sqlite.Queries) (found []Finding, err error) {
	keys, err := r.DoubleKeys(ctx, maxFindings)
	for _, k := range keys {
		found = append(found, Finding{Queue: k.Queue, ID: k.FirstID, Text: fmt.Sprintf("%d jobs hold the job_id %q, this is the first", k.Holders, k.JobID)})
	}
	return found, err
}

func wrongSideRows(ctx context.Context, r *sqlite.Queries) (found []Finding, err error) {
	orphans, err := r.Orphans(ctx, maxFindings)
	for _, o := range orphans {
		found = append(found, Finding{ID: o.MessageID, Text: "a " + o.Kind + " row is left of a job that is gone"})
	}
	if err != nil {
		return found, err
	}
	doubles, err := r.DoublePayloads(ctx, maxFindings)
	for _, d := range doubles {
		found = append(found, Finding{Queue: d.Queue, ID: d.ID, Text: "has its bytes twice, in its row and beside it; those in the row count"})
	}
	return found, err
}

func wrongHistory(ctx context.Context, r *sqlite.Queries) (found []Finding, err error) {
	late, err := r.LateHistory(ctx, maxFindings)
	for _, h := range late {
		found = append(found, Finding{Queue: h.Queue, ID: h.ID, Text: fmt.Sprintf("its history tells of delivery %d, its last one was %d", h.Delivery, h.Latest)})
	}
	if err != nil {
		return found, err
	}
	long, err := r.LongHistory(ctx, maxFindings)
	for _, h := range long {
		found = append(found, Finding{ID: h.MessageID, Text: fmt.Sprintf("its history has %d entries of at most 20", h.Entries)})
	}
	return found, err
}

// wrongSequence: a sequence behind the ids would give one of them twice.
func wrongSequence(ctx context.Context, r *sqlite.Queries) (found []Finding, err error) {
	last, err := r.LastID(ctx)
	if err != nil {
		return nil, err
	}
	highest, err := r.HighestID(ctx)
	if err == nil && last < highest {
		found = append(found, Finding{Text: fmt.Sprintf("the last id that was given is said to be %d, but there is a job %d", last, highest)})
	}
	return found, err
}
