package turnstile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/localqueue/localqueue/queue/internal/ofd"
	"golang.org/x/sys/unix"
)

// The file holds three numbers of 8 bytes, and locks on bytes far behind its end: one for the desk where the numbers are
// changed, and one per ticket. Nothing of it needs to survive, and nothing in it is trusted: a number that is too low
// leads to a ticket that is taken, and the next is tried.
const (
	atNext  = 0  // the next ticket
	atFloor = 8  // tickets below are passed by
	atTurns = 16 // counts turns: what says that the line moves

	deskByte   = 1 << 40
	ticketByte = 1 << 41
)

type desk struct {
	f     *os.File
	fd    uintptr
	raw   syscall.RawConn
	seen  bool      // anyone's last answer
	stuck time.Time // the desk was taken for long, by a process that was stopped there; until then there is no line
}

func openDesk(path string) (*desk, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the line's file: %w", err)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &desk{f: f, fd: f.Fd(), raw: raw}, nil
}

func (d *desk) close() error { return d.f.Close() }

func (d *desk) lock(how int, kind int16, start, n int64) (unix.Flock_t, error) {
	return ofd.Lock(d.fd, how, kind, start, n)
}

// held finds a ticket from a on and below b that another process holds.
func (d *desk) held(a, b int64) (ticket int64, ok bool) {
	if a >= b {
		return 0, false
	}
	lk, err := d.lock(unix.F_OFD_GETLK, unix.F_WRLCK, ticketByte+a, b-a)
	if err != nil || lk.Type == unix.F_UNLCK {
		return 0, false
	}
	return max(lk.Start-ticketByte, a), true
}

// last is behind every ticket there can be.
const last = 1 << 60

func (d *desk) anyone() bool {
	_, d.seen = d.held(0, last)
	if d.seen {
		_, d.seen = d.held(d.number(atFloor), last)
	}
	return d.seen
}

func (d *desk) seenAnyone() bool { return d.seen }

func (d *desk) behind(ticket int64) bool {
	_, ok := d.held(ticket+1, last)
	return ok
}

// before finds the ticket to wait for: the one just before, so that each turn's end wakes one process; if that is gone,
// any that is left.
func (d *desk) before(ticket int64) (int64, bool) {
	floor := d.number(atFloor)
	if t, ok := d.held(max(floor, ticket-1), ticket); ok {
		return t, true
	}
	return d.held(floor, ticket)
}

// draw takes the next ticket. It fails where the desk can't be had: there is no line then.
func (d *desk) draw() (int64, bool) {
	if !d.enter() {
		return 0, false
	}
	defer d.leave()
	ticket := max(d.number(atNext), d.number(atFloor))
	for tries := 0; ; tries++ {
		_, err := d.lock(unix.F_OFD_SETLK, unix.F_WRLCK, ticketByte+ticket, 1)
		if err == nil {
			break
		}
		if tries == 1000 {
			return 0, false
		}
		ticket++
	}
	d.setNumber(atNext, ticket+1)
	return ticket, true
}

func (d *desk) giveBack(ticket int64) {
	_, _ = d.lock(unix.F_OFD_SETLK, unix.F_UNLCK, ticketByte+ticket, 1)
}

// passBy lets the first ticket before ours count no longer.
func (d *desk) passBy(ticket int64) {
	if !d.enter() {
		return
	}
	defer d.leave()
	floor := d.number(atFloor)
	first, any := d.held(floor, ticket)
	if !any {
		return
	}
	for {
		earlier, any := d.held(floor, first)
		if !any {
			break
		}
		first = earlier
	}
	d.setNumber(atFloor, first+1)
	d.countTurn() // the others count their patience anew: one ticket at a time
}

// watch returns a channel that closes when another process's ticket is given back, or the process is gone. The wait can't
// be called off: its goroutine stays until then.
func (d *desk) watch(ticket int64) chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = d.raw.Control(func(fd uintptr) { // which keeps the descriptor from being closed and used for another file
			if _, err := ofd.Lock(fd, unix.F_OFD_SETLKW, unix.F_RDLCK, ticketByte+ticket, 1); err == nil {
				_, _ = ofd.Lock(fd, unix.F_OFD_SETLK, unix.F_UNLCK, ticketByte+ticket, 1)
			}
		})
	}()
	return gone
}

// enter takes the desk, where one process at a time changes the numbers: some microseconds. A process stopped there would
// hold up all; they do without a line for a second then.
func (d *desk) enter() bool {
	if time.Now().Before(d.stuck) {
		return false
	}
	for i := range 100 {
		if _, err := d.lock(unix.F_OFD_SETLK, unix.F_WRLCK, deskByte, 1); err == nil {
			return true
		}
		time.Sleep(time.Duration(i) * 5 * time.Microsecond)
	}
	d.stuck = time.Now().Add(time.Second)
	return false
}

func (d *desk) leave() { _, _ = d.lock(unix.F_OFD_SETLK, unix.F_UNLCK, deskByte, 1) }

// drawn is the ticket that will be drawn next.
func (d *desk) drawn() int64 { return d.number(atNext) }

func (d *desk) turns() int64 { return d.number(atTurns) }

// countTurn isn't exact when two count at once; that it changes is enough.
func (d *desk) countTurn() { d.setNumber(atTurns, d.turns()+1) }

func (d *desk) number(at int64) int64 {
	var b [8]byte
	if n, err := d.f.ReadAt(b[:], at); n < len(b) || err != nil {
		return 0
	}
	return min(max(int64(binary.LittleEndian.Uint64(b[:])), 0), last/2)
}

func (d *desk) setNumber(at, n int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, _ = d.f.WriteAt(b[:], at)
}
