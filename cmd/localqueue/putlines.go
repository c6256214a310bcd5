//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/localqueue/localqueue/queue"
)

// A batch of lines is put when it is this large or this old, whichever comes first.
const (
	batchJobs  = 1000
	batchBytes = 1 << 20
	batchAge   = 100 * time.Millisecond
)

// line is one line of the input, decoded; or why it can't be a job.
type line struct {
	number  int
	payload []byte
	err     error
}

func putLines(ctx context.Context, a *app, f *putFlags, opts []queue.PutOption) error {
	src, err := a.source(f.file)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	return a.with(false, func(q *queue.Queue) error {
		if err := q.CheckPut(nil, opts...); err != nil {
			return err
		}
		stop := make(chan struct{})
		defer close(stop)
		p := &linePut{app: a, flags: f, q: q, opts: opts, lines: make(chan line), size: batchJobs, bar: newProgress(a, "putting", !a.outTerminal)}
		defer p.bar.finish()
		go readLines(src, f, q.MaxPayload(), p.lines, stop)
		return p.run(ctx)
	}, queue.WithMaxPending(f.maxPending))
}

// linePut stores the lines of the input.
type linePut struct {
	app    *app
	flags  *putFlags
	q      *queue.Queue
	opts   []queue.PutOption
	lines  chan line
	size   int // of the next put: a full queue may have room for a part of the batch
	stored int
	bar    *progress
}

func (p *linePut) run(ctx context.Context) error {
	for {
		batch, last, err := p.collect(ctx)
		if storing := p.store(ctx, batch); storing != nil {
			err = storing
		}
		if err != nil {
			stored := p.stored
			if newLine := (*lineError)(nil); errors.As(err, &newLine) {
				return detail(failf(newLine.err, "line %d: %v; %d jobs stored before it", newLine.number, newLine.err, stored),
					func(d *errorDoc) { d.Line, d.Stored = newLine.number, &stored })
			}
			return detail(failf(err, "%s; %d jobs stored before", message(err), stored), func(d *errorDoc) { d.Stored = &stored })
		}
		if last {
			return nil
		}
	}
}

type lineError struct {
	number int
	err    error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.number, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// collect gathers the next batch: what comes within batchAge of its first line. last says that nothing follows.
func (p *linePut) collect(ctx context.Context) (batch []queue.NewJob, last bool, err error) {
	var due <-chan time.Time
	for size := 0; len(batch) < batchJobs && size < batchBytes; {
		select {
		case <-ctx.Done():
			return nil, true, fmt.Errorf("reading lines: %w", ctx.Err())
		case <-due:
			return batch, false, nil
		case l, ok := <-p.lines:
			switch {
			case !ok:
				return batch, true, nil
			case l.err != nil:
				return batch, true, &lineError{l.number, l.err}
			}
			if due == nil {
				timer := time.NewTimer(batchAge)
				defer timer.Stop()
				due = timer.C
			}
			batch = append(batch, queue.NewJob{Payload: l.payload, Options: p.opts})
			size += len(l.payload)
		}
	}
	return batch, false, nil
}

// store puts a batch, in parts if the queue is too full for all of it at once.
func (p *linePut) store(ctx context.Context, jobs []queue.NewJob) error {
	for len(jobs) > 0 {
		n := min(p.size, len(jobs))
		res, err := p.put(ctx, jobs[:n])
		if errors.Is(err, queue.ErrFull) && n > 1 {
			p.size = n / 2
			continue
		}
		if err != nil {
			return err
		}
		p.size = min(2*max(p.size, n), batchJobs)
		jobs = jobs[n:]
		p.stored += n
		if err := p.print(res); err != nil {
			return err
		}
		p.bar.add(n)
	}
	return nil
}

func (p *linePut) put(ctx context.Context, jobs []queue.NewJob) ([]queue.PutResult, error) {
	if len(jobs) > 1 {
		return p.q.TryPutMany(ctx, jobs)
	}
	return p.flags.put(ctx, p.q, func(ctx context.Context, wait bool) ([]queue.PutResult, error) {
		if wait {
			return p.q.PutMany(ctx, jobs)
		}
		return p.q.TryPutMany(ctx, jobs)
	})
}

func (p *linePut) print(res []queue.PutResult) error {
	var out bytes.Buffer
	for _, r := range res {
		if !p.app.json {
			fmt.Fprintln(&out, r.ID)
			continue
		}
		doc, err := marshal(putDoc{ID: r.ID, Queue: p.q.Name(), Duplicate: r.Duplicate})
		if err != nil {
			return err
		}
		out.Write(doc)
	}
	if _, err := p.app.out.Write(out.Bytes()); err != nil {
		return failf(errOutput, "the ids could not be printed: %v", err)
	}
	return nil
}

// readLines sends every line until the end of src, the first bad one, or stop. It holds one line at a time.
func readLines(src io.Reader, f *putFlags, limit int, to chan<- line, stop <-chan struct{}) {
	defer close(to)
	r := bufio.NewReaderSize(src, 64<<10)
	for number := 1; ; number++ {
		payload, more, err := readLine(r, f, limit)
		if err == nil && f.skipEmpty && more && len(bytes.TrimSuffix(payload, []byte{'\r'})) == 0 {
			continue
		}
		if err == nil && !more {
			return
		}
		select {
		case to <- line{number, payload, err}:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// readLine reads and decodes the next line without its \n. more is false at the end of the input.
func readLine(r *bufio.Reader, f *putFlags, limit int) (payload []byte, more bool, err error) {
	raw := limit
	if f.base64 {
		raw = base64.StdEncoding.EncodedLen(limit) + 1 // a \r
	}
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		if len(bytes.TrimSuffix(text, []byte{'\n'})) > raw {
			return nil, true, fmt.Errorf("%w: more than the %d bytes a job may have", queue.ErrPayloadTooLarge, limit)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if len(text) == 0 {
				return nil, false, nil
			}
		case err != nil:
			return nil, true, failf(errInput, "reading the input: %v", err)
		}
		break
	}
	text = bytes.TrimSuffix(text, []byte{'\n'})
	if f.base64 {
		if text, err = base64.StdEncoding.AppendDecode(nil, bytes.TrimSpace(text)); err != nil {
			return nil, true, failf(errPayload, "not base64: %v", err)
		}
		if len(text) > limit {
			return nil, true, fmt.Errorf("%w: more than the %d bytes a job may have", queue.ErrPayloadTooLarge, limit)
		}
	}
	return text, true, nil
}
