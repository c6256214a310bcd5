//go:build unix

package main

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/localqueue/localqueue/cmd/localqueue/internal/safe"
	"github.com/localqueue/localqueue/doctor"
	"github.com/localqueue/localqueue/queue"
)

// What a screen has room for; --json has all.
const (
	doctorQueues   = 8
	doctorFindings = 10
	doctorOpeners  = 5
)

func doctorCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say how the queue is, what is wrong with it, and what to do; exit 1 on a problem",
		Long: `Say how the queue is, what is wrong with it, and what to do about that. It changes nothing, and also speaks of a file that
no other verb opens. Exit 1 if there is a problem; a note is none. For damage inside the file see check.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDir("--dir", a.dir); err != nil {
				return err
			}
			r, err := doctor.Examine(cmd.Context(), a.dir, a.storeOptions(true)...)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(newDoctorDoc(r))
			} else {
				err = a.printReport(r)
			}
			if err == nil && !r.Healthy() {
				err = failf(errUnhealthy, "%s", counted(r.Problems(), "problem"))
			}
			return err
		},
	}
}

// printReport is one screen: the facts, the queues, the findings with what to do.
func (a *app) printReport(r *doctor.Report) error {
	f := r.Facts
	err := a.table(func(row func(...any)) {
		row("directory", fmt.Sprintf("%s (%s, %s free)", safe.Line(f.Dir), f.FileSystem, bytesText(f.FreeBytes)))
		row("versions", fmt.Sprintf("localqueue %s, SQLite %s, schema %s of %d", newVersionDoc().Version, f.SQLite, numberText(schemaOrNull(f)), f.NewestSchema))
		if f.SyncedLevel != "" {
			row("journal", fmt.Sprintf("%s; with durability %s, synchronous is %s for synced commits, %s for others", or(f.Journal), f.Durability, f.SyncedLevel, f.OtherLevel))
		} else {
			row("journal", or(f.Journal))
		}
		if f.Pages > 0 {
			row("file", fmt.Sprintf("%s, %d pages of %d bytes, %d free", bytesText(f.FileBytes), f.Pages, f.PageSize, f.FreePages))
		} else {
			row("file", bytesText(f.FileBytes)+", its pages are unknown")
		}
		if f.WALKnown || f.WALBytes == 0 {
			row("WAL", fmt.Sprintf("%s, %d frames, %d not in the file yet", bytesText(f.WALBytes), f.WALFrames, f.WALFrames-f.WALCopied))
		} else {
			row("WAL", bytesText(f.WALBytes)+", how much of it is not in the file yet is unknown")
		}
		row("open in", openersText(f.Openers))
	})
	if err == nil && len(f.Queues) > 0 {
		err = a.printDoctorQueues(f.Queues)
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	for i, found := range r.Findings {
		if i == doctorFindings {
			fmt.Fprintf(&text, "... and %s: --json has them all\n", counted(len(r.Findings)-i, "more finding"))
			break
		}
		where := ""
		if found.Queue != "" {
			where = ", queue " + safe.Cut(found.Queue, 30)
		}
		fmt.Fprintf(&text, "%s %s%s: %s\n    %s\n", strings.ToUpper(string(found.Severity)), found.Code, where, safe.Cut(found.Text, 400), safe.Line(found.Advice))
	}
	if r.Healthy() {
		text.WriteString("healthy\n")
	}
	return a.print(nil, "\n%s", text.String())
}

func (a *app) printDoctorQueues(queues []queue.QueueFacts) error {
	if err := a.print(nil, "\n"); err != nil {
		return err
	}
	more := len(queues) - doctorQueues
	err := a.table(func(row func(...any)) {
		row(queuesHead...)
		for _, q := range queues[:min(len(queues), doctorQueues)] {
			paused := ""
			if q.Paused {
				paused = "paused"
			}
			row(safe.Cut(q.Queue, 30), q.Ready, q.Delayed, q.Processing, q.Expired, q.Acked, q.Failed, q.OldestAge.Round(1e6), paused)
		}
	})
	if err == nil && more > 0 {
		err = a.print(nil, "... and %s\n", counted(more, "more queue"))
	}
	return err
}

func openersText(openers []queue.Opener) string {
	var parts []string
	for i, o := range openers {
		if i == doctorOpeners {
			parts = append(parts, fmt.Sprintf("and %d more", len(openers)-i))
			break
		}
		text := fmt.Sprintf("process %d", o.PID)
		if o.Stores > 1 {
			text += fmt.Sprintf(" (%d times)", o.Stores)
		}
		if o.Stopped {
			text += " (stopped)"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "no process that this user can see"
	}
	return strings.Join(parts, ", ")
}

// schemaOrNull is the file's schema, where it could be read.
func schemaOrNull(f *queue.Facts) *int64 {
	if !f.SchemaKnown() {
		return nil
	}
	return &f.Schema
}

func numberText(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func bytesText(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

type doctorDoc struct {
	Healthy     bool             `json:"healthy"`
	At          string           `json:"at"`
	Dir         string           `json:"dir"`
	Version     string           `json:"version"`
	SQLite      string           `json:"sqlite"`
	Schema      *int64           `json:"schema"` // null: it could not be read
	Newest      int64            `json:"newest_schema"`
	Journal     *string          `json:"journal"`
	Durability  queue.Durability `json:"durability"`
	SyncedLevel *string          `json:"synced_level"` // null: no connection could write
	OtherLevel  *string          `json:"other_level"`
	FileSystem  string           `json:"file_system"`
	Network     bool             `json:"network"`
	Free        int64            `json:"free_bytes"`
	FileBytes   int64            `json:"file_bytes"`
	PageSize    int64            `json:"page_size"`
	Pages       int64            `json:"pages"`
	FreePages   int64            `json:"free_pages"`
	Analyzed    bool             `json:"analyzed"`
	WALBytes    int64            `json:"wal_bytes"`
	WALFrames   *int64           `json:"wal_frames"` // null: not known, as on a read-only file system
	WALCopied   *int64           `json:"wal_copied"`
	Openers     []openerDoc      `json:"open_in"`
	Restoring   bool             `json:"restoring"`
	Queues      []doctorQueueDoc `json:"queues"`
	Findings    []doctorFinding  `json:"findings"`
}

type openerDoc struct {
	PID     int  `json:"pid"`
	Stores  int  `json:"stores"`
	Stopped bool `json:"stopped"`
}

type doctorQueueDoc struct {
	statsDoc
	HeadSince     *string `json:"head_since"` // since when the next job can be claimed
	FirstLeaseEnd *string `json:"first_lease_end"`
	LastLeaseEnd  *string `json:"last_lease_end"`
	FirstAcked    *string `json:"first_acked"`
}

type doctorFinding struct {
	Severity doctor.Severity `json:"severity"`
	Code     doctor.Code     `json:"code"`
	Queue    *string         `json:"queue"`
	Text     string          `json:"text"`
	Advice   string          `json:"advice"`
}

func newDoctorDoc(r *doctor.Report) doctorDoc {
	f := r.Facts
	doc := doctorDoc{
		Healthy: r.Healthy(), At: instant(f.At), Dir: f.Dir, Version: newVersionDoc().Version, SQLite: f.SQLite, Schema: schemaOrNull(f), Newest: f.NewestSchema,
		Journal: orNull(f.Journal), Durability: f.Durability, SyncedLevel: orNull(f.SyncedLevel), OtherLevel: orNull(f.OtherLevel),
		FileSystem: f.FileSystem, Network: f.Network, Free: f.FreeBytes, FileBytes: f.FileBytes, PageSize: f.PageSize, Pages: f.Pages, FreePages: f.FreePages,
		Analyzed: f.Analyzed, WALBytes: f.WALBytes, Restoring: f.Restoring,
		Openers: []openerDoc{}, Queues: []doctorQueueDoc{}, Findings: []doctorFinding{},
	}
	if f.WALKnown {
		doc.WALFrames, doc.WALCopied = &f.WALFrames, &f.WALCopied
	}
	for _, o := range f.Openers {
		doc.Openers = append(doc.Openers, openerDoc(o))
	}
	for _, q := range f.Queues {
		doc.Queues = append(doc.Queues, doctorQueueDoc{statsDoc: newStatsDoc(q.Stats), HeadSince: instantOrNull(q.HeadSince),
			FirstLeaseEnd: instantOrNull(q.FirstLeaseEnd), LastLeaseEnd: instantOrNull(q.LastLeaseEnd), FirstAcked: instantOrNull(q.FirstAcked)})
	}
	for _, d := range r.Findings {
		doc.Findings = append(doc.Findings, doctorFinding{Severity: d.Severity, Code: d.Code, Queue: orNull(d.Queue), Text: d.Text, Advice: d.Advice})
	}
	return doc
}
