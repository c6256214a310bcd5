package powercut

import (
	"fmt"
	"strings"

	"github.com/localqueue/localqueue/chaos/preload"
)

// Disk follows a record of system calls, and knows at each moment what a power cut can't take any more and what it can.
type Disk struct {
	inodes  map[uint64]*file // those in use; a file system gives the number of a removed file to the next one
	names   map[string]*file // the directory as it was last synced
	entries []entry          // its changes since
}

type file struct {
	synced  []byte   // its bytes at its last sync
	pending []change // what was done to it since
}

// change is a write, or a truncation.
type change struct {
	offset    int64
	data      []byte
	truncates bool // to offset
}

// entry is a change of the directory: a name with a new file, or without one.
type entry struct {
	name string
	file *file // nil: unlinked
}

// NewDisk starts with files that were there before the record began.
func NewDisk(start Image) *Disk {
	d := &Disk{inodes: map[uint64]*file{}, names: map[string]*file{}}
	for name, data := range start {
		d.names[name] = &file{synced: data}
	}
	return d
}

// Apply follows one record. The shared memory file is left out: it is nothing that outlives the machine.
func (d *Disk) Apply(r preload.Record) error {
	if strings.HasSuffix(r.Name, "-shm") {
		return nil
	}
	switch r.Kind {
	case preload.Created:
		d.inodes[r.Inode] = &file{}
		d.entries = append(d.entries, entry{r.Name, d.inodes[r.Inode]})
		return nil
	case preload.Unlinked:
		d.entries = append(d.entries, entry{name: r.Name})
		return nil
	case preload.Opened:
		if f := d.names[r.Name]; f != nil && d.inodes[r.Inode] == nil { // one that was there before
			d.inodes[r.Inode] = f
		}
		return nil
	case preload.Mark:
		return nil
	}
	if r.Name == "." {
		d.syncDirectory()
		return nil
	}
	f := d.inodes[r.Inode]
	if f == nil {
		return fmt.Errorf("%s was %v before it was there", r.Name, r.Kind)
	}
	switch r.Kind {
	case preload.Wrote:
		f.pending = append(f.pending, change{offset: r.Offset, data: r.Data})
	case preload.Truncated:
		f.pending = append(f.pending, change{offset: r.Offset, truncates: true})
	case preload.Synced:
		f.sync()
	}
	return nil
}

func (d *Disk) syncDirectory() {
	for _, e := range d.entries {
		e.apply(d.names)
	}
	d.entries = nil
}

func (e entry) apply(names map[string]*file) {
	if e.file == nil {
		delete(names, e.name)
		return
	}
	names[e.name] = e.file
}

func (f *file) sync() {
	size := int64(len(f.synced))
	for _, c := range f.pending {
		size = max(size, c.end())
	}
	whole := resized(f.synced, size)
	size = int64(len(f.synced))
	for _, c := range f.pending {
		size = c.sizeAfter(size)
		c.applyTo(whole)
	}
	f.synced, f.pending = whole[:size:size], nil
}

func (c change) end() int64 { return c.offset + int64(len(c.data)) }

func (c change) sizeAfter(size int64) int64 {
	if c.truncates {
		return c.offset
	}
	return max(size, c.end())
}

// applyTo changes a buffer that is large enough for all of a file's changes: what is cut off becomes zeros, which is what
// it reads as when the file grows again.
func (c change) applyTo(whole []byte) {
	if c.truncates {
		clear(whole[c.offset:])
		return
	}
	copy(whole[c.offset:], c.data)
}

// resized is a copy of b with size bytes.
func resized(b []byte, size int64) []byte {
	c := make([]byte, size)
	copy(c, b)
	return c
}

func isWAL(name string) bool { return strings.HasSuffix(name, "-wal") }
