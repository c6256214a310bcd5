package preload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// Kind is what a record tells.
type Kind uint16

// The kinds of records. Those but Mark are written by lib/preload.c.
const (
	Opened    Kind = iota + 1 // an existing file, or the directory
	Created                   // by an open
	Wrote                     // Data at Offset
	Truncated                 // to Offset bytes, or grown to them
	Synced                    // a file, or the directory: all that was done to it before is on the disk
	Unlinked
	Mark // Data is the client's own
)

func (k Kind) String() string {
	names := []string{"", "opened", "created", "wrote", "truncated", "synced", "unlinked", "mark"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint16(k))
}

// Record is one effect. Only calls that succeeded are recorded.
type Record struct {
	Kind   Kind
	Name   string // relative to Options.Dir; "." is the directory. "" in a mark
	Inode  uint64 // of the file behind the call; a name can get a new one. 0 for Unlinked and Mark
	Offset int64  // bytes
	Data   []byte
}

// headerSize is that of struct header in lib/preload.c: the record's size (4 bytes), its kind (2), the name's length (2),
// inode (8), offset (8). The name and the data follow. Integers are of the machine's byte order.
const headerSize = 24

var order = binary.NativeEndian

// ReadLog reads a log. A child that was killed may have left a part of a record at its end, which is dropped.
func ReadLog(path string) ([]Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Record
	for at := 0; len(text)-at >= headerSize; {
		h := text[at:]
		size, name := int(order.Uint32(h)), int(order.Uint16(h[6:]))
		r := Record{Kind: Kind(order.Uint16(h[4:])), Inode: order.Uint64(h[8:]), Offset: int64(order.Uint64(h[16:]))}
		if size < headerSize+name || r.Kind < Opened || r.Kind > Mark {
			return all, fmt.Errorf("%s: no record at byte %d", path, at)
		}
		if size > len(h) {
			break
		}
		r.Name, r.Data = string(h[headerSize:headerSize+name]), h[headerSize+name:size:size]
		all, at = append(all, r), at+size
	}
	return all, nil
}

// Marks appends the client's own records.
type Marks struct{ log *os.File }

// OpenMarks opens, in a child, the log that its parent has named.
func OpenMarks() (*Marks, error) {
	path := os.Getenv(envLog)
	if path == "" {
		return nil, errors.New("preload: this process was started without a Log")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &Marks{log: f}, nil
}

// Mark appends a record of the client's. It may be called from any goroutine.
func (m *Marks) Mark(data []byte) error {
	rec := make([]byte, headerSize, headerSize+len(data))
	order.PutUint32(rec, uint32(headerSize+len(data)))
	order.PutUint16(rec[4:], uint16(Mark))
	_, err := m.log.Write(append(rec, data...))
	return err
}

// Close closes the log in this process.
func (m *Marks) Close() error { return m.log.Close() }
