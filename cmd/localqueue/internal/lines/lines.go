// Package lines lets many writers share one output without mixing their lines.
package lines

import (
	"bytes"
	"io"
	"sync"
)

// chunk is how much of an unfinished line is held back before it is passed on in parts.
const chunk = 64 << 10

// Sink is the shared output. Each source writes through a Writer of its own.
type Sink struct {
	mu    sync.Mutex
	w     io.Writer
	open  *Writer // whose unfinished line the output ends with
	err   error
	onErr func(error)
}

// NewSink shares w. After w has failed, what is written is dropped, and onErr, which may be nil, has been called once.
func NewSink(w io.Writer, onErr func(error)) *Sink { return &Sink{w: w, onErr: onErr} }

// Writer returns a new source of lines. It is for one goroutine.
func (s *Sink) Writer() *Writer { return &Writer{sink: s} }

// Write passes on a message of one or more whole lines, from any goroutine. It never fails.
func (s *Sink) Write(p []byte) (int, error) {
	s.emit(nil, p)
	return len(p), nil
}

// emit passes p on. It starts on a line of its own unless the output ends with w's own unfinished line.
func (s *Sink) emit(w *Writer, p []byte) {
	if len(p) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if s.open != nil && s.open != w {
		_, s.err = s.w.Write([]byte{'\n'})
	}
	if s.err == nil {
		_, s.err = s.w.Write(p)
	}
	s.open = nil
	if p[len(p)-1] != '\n' {
		s.open = w
	}
	if s.err != nil && s.onErr != nil {
		s.onErr(s.err)
	}
}

// Writer passes whole lines on to its Sink. A line of more than 64 KiB is passed on in parts, which others may interrupt.
type Writer struct {
	sink *Sink
	held []byte // the beginning of a line
}

// Write never fails: the source of the lines can't help a broken output.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	if end := bytes.LastIndexByte(p, '\n') + 1; end > 0 {
		if len(w.held) > 0 {
			w.held = append(w.held, p[:end]...)
			w.sink.emit(w, w.held)
			w.held = w.held[:0]
		} else {
			w.sink.emit(w, p[:end])
		}
		p = p[end:]
	}
	w.held = append(w.held, p...)
	if len(w.held) >= chunk {
		w.Flush()
	}
	return n, nil
}

// Flush passes on the unfinished line, if any.
func (w *Writer) Flush() {
	w.sink.emit(w, w.held)
	w.held = w.held[:0]
}

// Tail keeps the last bytes of what is written to it.
type Tail struct {
	max int
	buf []byte
}

// NewTail keeps the last most bytes.
func NewTail(most int) *Tail { return &Tail{max: most} }

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > t.max {
		p = p[n-t.max:]
	}
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.max {
		t.buf = t.buf[:copy(t.buf, t.buf[len(t.buf)-t.max:])]
	}
	return n, nil
}

// Bytes returns what is kept.
func (t *Tail) Bytes() []byte { return t.buf[max(0, len(t.buf)-t.max):] }
