package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/localqueue/localqueue/archive"
	"github.com/localqueue/localqueue/queue"
)

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// temporary opens a Store for an example; done closes and removes it.
func temporary() (s *queue.Store, done func()) {
	dir, err := os.MkdirTemp("", "localqueue-example-")
	check(err)
	s, err = queue.Open(dir)
	check(err)
	return s, func() {
		check(s.Close())
		check(os.RemoveAll(dir))
	}
}

// Jobs move to another directory, with their ids and their history.
func Example() {
	ctx := context.Background()
	from, done := temporary()
	defer done()
	to, done := temporary()
	defer done()

	_, err := from.Default().Put(ctx, []byte("hello"), queue.JobID("greeting"))
	check(err)
	var text bytes.Buffer
	_, err = archive.Export(ctx, from, &text, archive.ExportOptions{})
	check(err)

	res, err := archive.Import(ctx, to, &text, archive.ImportOptions{})
	check(err)
	job, err := to.Default().TryGet(ctx)
	check(err)
	fmt.Printf("%d stored, ids kept: %v; job %d is %s\n", res.Stored, res.KeptIDs, job.ID, job.Payload)
	// Output: 1 stored, ids kept: true; job 1 is hello
}

// Jobs from another system need no more than a payload. The name lets a repeat go on where this ended.
func ExampleImport() {
	ctx := context.Background()
	s, done := temporary()
	defer done()
	text := `{"payload":{"to":"ann@example.com"},"queue":"mail","job_id":"welcome-17"}
{"text":"plain text","queue":"mail","priority":5}
{"payload":`
	opts := archive.ImportOptions{Name: "nightly dump"}
	_, err := archive.Import(ctx, s, strings.NewReader(text), opts)
	var line *archive.LineError
	fmt.Println(errors.As(err, &line), err)

	text += `"the end of it"}`
	res, err := archive.Import(ctx, s, strings.NewReader(text), opts)
	check(err)
	fmt.Printf("%d stored, %d lines were in\n", res.Stored, res.Earlier)
	// Output:
	// true line 3: not JSON: it breaks off
	// 1 stored, 2 lines were in
}

func ExampleExportFile() {
	ctx := context.Background()
	s, done := temporary()
	defer done()
	_, err := s.Default().Put(ctx, []byte("hello"))
	check(err)
	file := filepath.Join(s.Dir(), "jobs.jsonl")
	// Resume: should it be broken off, the same call goes on.
	res, err := archive.ExportFile(ctx, s, file, archive.FileOptions{Resume: true})
	check(err)
	text, err := os.ReadFile(file)
	check(err)
	fmt.Println(res.Jobs, "job in", strings.Count(string(text), "\n"), "lines")
	// Output: 1 job in 3 lines
}
