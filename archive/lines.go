package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/localqueue/localqueue/queue"
)

// lines reads a text line by line, holding one of them, and sums up those that are done with.
type lines struct {
	r      *bufio.Reader
	limit  int   // bytes of a line
	number int64 // of the line read last, from 1
	buf    []byte

	finished int64 // lines that are done with
	sum      hash.Hash
}

// readError is a failure of the reader itself.
type readError struct {
	line int64
	err  error
}

func (e *readError) Error() string { return fmt.Sprintf("reading line %d: %v", e.line, e.err) }
func (e *readError) Unwrap() error { return e.err }

// lineRest is room for everything in a line but the payload: headers, errors, history.
const lineRest = 4 << 20

// newLines reads lines of jobs whose payloads have at most so many bytes. In JSON a byte may take six.
func newLines(r io.Reader, maxPayload int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), limit: 6*maxPayload + lineRest, sum: sha256.New()}
}

// next returns a line without its end, valid until the following call, or io.EOF after the last one.
func (l *lines) next() ([]byte, error) {
	l.number++
	if l.buf = l.buf[:0]; cap(l.buf) > 1<<20 {
		l.buf = nil // a huge line has left it
	}
	for {
		part, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		switch {
		case len(l.buf) > l.limit:
			return nil, &LineError{l.number, fmt.Errorf("%w: the line has more than %d bytes", queue.ErrPayloadTooLarge, l.limit)}
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil:
			return l.text(bytes.TrimSuffix(l.buf, []byte{'\n'})), nil
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			return l.text(l.buf), nil
		case errors.Is(err, io.EOF):
			l.number--
			return nil, io.EOF
		default:
			return nil, &readError{l.number, err}
		}
	}
}

// text is a line without the mark that some editors put before the first one.
func (l *lines) text(line []byte) []byte {
	if l.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line
}

// done adds the line to the sum. A missing end at the end of the text makes no difference.
func (l *lines) done(line []byte) {
	_, _ = l.sum.Write(line) // never fails
	_, _ = l.sum.Write([]byte{'\n'})
	l.finished++
}

// digest is the sum of the lines that are done with.
func (l *lines) digest() string { return hex.EncodeToString(l.sum.Sum(nil)) }
