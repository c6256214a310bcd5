package preload

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls are kinds of calls, to be combined with |.
type Calls uint32

// The kinds of calls that can fail.
const (
	Open Calls = 1 << iota
	Read
	Write
	Truncate
	Sync // of files, and of the directory
	Unlink
	Map
)

// Files are kinds of files, told apart by their names, to be combined with |.
type Files uint32

// The kinds of files whose calls can fail.
const (
	DB Files = 1 << iota
	WAL
	SHM
	Journal
	Directory
	Other

	AnyFile = DB | WAL | SHM | Journal | Directory | Other
)

// Fault says which calls fail, and how.
type Fault struct {
	Calls  Calls
	Files  Files
	Nth    uint64 // which of them, from 1. 0: none, they are counted only
	Errno  syscall.Errno
	Sticky bool // all after it fail too
	Torn   bool // half of the Nth write is done; what fails is the next one, which would write the rest
}

// Control arms faults in the processes that were started with it.
type Control struct {
	path   string
	mem    []byte
	shared *shared
}

// shared is struct control in lib/preload.c.
type shared struct {
	armed                             atomic.Uint32
	calls, files, errno, sticky, torn uint32
	nth                               uint64
	seen, fired                       atomic.Uint64
}

// NewControl makes a control, which goes with the test.
func NewControl(tb testing.TB) *Control {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "control")
	if err := os.WriteFile(path, make([]byte, unsafe.Sizeof(shared{})), 0o600); err != nil {
		tb.Fatal(err)
	}
	c, err := mapControl(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// OpenControl opens, in a child, the control that its parent has made.
func OpenControl() (*Control, error) {
	path := os.Getenv(envControl)
	if path == "" {
		return nil, errors.New("preload: this process was started without a Control")
	}
	return mapControl(path)
}

func mapControl(path string) (*Control, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	mem, err := unix.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(shared{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &Control{path: path, mem: mem, shared: (*shared)(unsafe.Pointer(&mem[0]))}, nil
}

// Arm sets a fault in place of the one before, and counts from 0.
func (c *Control) Arm(f Fault) {
	s := c.shared
	s.armed.Store(0)
	s.calls, s.files, s.nth, s.errno = uint32(f.Calls), uint32(f.Files), f.Nth, uint32(f.Errno)
	s.sticky, s.torn = flag(f.Sticky), flag(f.Torn)
	s.seen.Store(0)
	s.fired.Store(0)
	s.armed.Store(1)
}

func flag(set bool) uint32 {
	if set {
		return 1
	}
	return 0
}

// Disarm lets all calls through. The counts stay as they are.
func (c *Control) Disarm() { c.shared.armed.Store(0) }

// Seen is how many calls the fault's Calls and Files have matched, those that failed among them.
func (c *Control) Seen() uint64 { return c.shared.seen.Load() }

// Fired is how many calls failed, or were torn.
func (c *Control) Fired() uint64 { return c.shared.fired.Load() }

// Close unmaps it in this process; the fault stays armed in others.
func (c *Control) Close() error {
	if c.mem == nil {
		return nil
	}
	mem := c.mem
	c.mem, c.shared = nil, nil
	return unix.Munmap(mem)
}
