//go:build unix

package bench

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Every process writes down what it was told about each job, in a file of its own, and the accounting reads them all when
// the run is over. A line is written after the queue has answered: what a killed process had no time to write down may or
// may not have happened, all else has.

type event byte

const (
	evPut   event = iota + 1 // Put has returned
	evClaim                  // Get has returned
	evAck                    // Ack has returned
)

// record is one line: 40 bytes.
type record struct {
	event    event
	id       int64
	delivery int64
	at       int64 // monotonic nanoseconds, the same clock in every process
	until    int64 // end of the lease, in Unix milliseconds, of a claim
}

const recordSize = 40

// journal is a process's file of records. Several goroutines write to it.
type journal struct {
	mu     sync.Mutex
	file   *os.File
	buf    *bufio.Writer
	atOnce bool // a record is in the file when write returns, so that it outlives this process
	err    error
}

func openJournal(path string, atOnce bool) (*journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the journal of this process: %w", err)
	}
	return &journal{file: f, buf: bufio.NewWriterSize(f, 256<<10), atOnce: atOnce}, nil
}

func (l *journal) write(r record) {
	var b [recordSize]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(r.event))
	binary.LittleEndian.PutUint64(b[8:], uint64(r.id))
	binary.LittleEndian.PutUint64(b[16:], uint64(r.delivery))
	binary.LittleEndian.PutUint64(b[24:], uint64(r.at))
	binary.LittleEndian.PutUint64(b[32:], uint64(r.until))
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.buf.Write(b[:])
	if l.atOnce && err == nil {
		err = l.buf.Flush()
	}
	if l.err == nil {
		l.err = err
	}
}

func (l *journal) close() error {
	return errors.Join(l.err, l.buf.Flush(), l.file.Close())
}

// readJournal hands over every whole record of a file. A process that was killed may have left half of one.
func readJournal(path string, each func(record)) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // killed before it had begun
	}
	if err != nil {
		return fmt.Errorf("the journal of a process: %w", err)
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReaderSize(f, 256<<10)
	var b [recordSize]byte
	for {
		_, err := io.ReadFull(in, b[:])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the journal of a process: %w", err)
		}
		each(record{
			event:    event(binary.LittleEndian.Uint64(b[0:])),
			id:       int64(binary.LittleEndian.Uint64(b[8:])),
			delivery: int64(binary.LittleEndian.Uint64(b[16:])),
			at:       int64(binary.LittleEndian.Uint64(b[24:])),
			until:    int64(binary.LittleEndian.Uint64(b[32:])),
		})
	}
}
