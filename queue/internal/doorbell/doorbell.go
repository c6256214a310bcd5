// Package doorbell wakes sleepers in other processes.
//
// A process with sleepers has a slot: a number, and a FIFO of that number that it reads. For each thing its sleepers wait
// for, a key, it holds a lock on one byte that belongs to that key and slot. Who has news asks the kernel for such a lock:
// one system call says that nobody sleeps, or names a slot, and what is written to its FIFO says how many sleepers the
// news is for. So nothing is rung while nobody sleeps, news for k wakes at most k in all processes together, and the
// kernel itself forgets the sleepers of a process that dies. A FIFO needs no watch and has no limit of watches.
//
// The order that makes it safe: a sleeper takes the lock, then looks, then sleeps; news are committed, then rung.
package doorbell

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
)

// ErrDeaf means that other processes can't wake this one: every slot is taken, or there can be no FIFO in the directory.
var ErrDeaf = errors.New("no doorbell for this process")

// Key is what sleepers wait for, as a number. Two things may have the same: that costs a wake for nothing.
type Key uint32

// KeyOf makes a key of a name.
func KeyOf(name string) Key {
	h := fnv.New32a()
	_, _ = io.WriteString(h, name)
	return Key(h.Sum32())
}

// News is what is written to a FIFO: 8 bytes, which a pipe never tears.
type News struct {
	Key  Key
	N    int // for so many sleepers
	Hops int // how often what is left of it may be sent on
}

const (
	newsSize = 8
	maxN     = 1<<16 - 1
	maxHops  = 1<<16 - 1
)

func (n News) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(n.Key))
	b = binary.LittleEndian.AppendUint16(b, uint16(min(n.N, maxN)))
	return binary.LittleEndian.AppendUint16(b, uint16(min(n.Hops, maxHops)))
}

func decode(b []byte) News {
	return News{Key: Key(binary.LittleEndian.Uint32(b)), N: int(binary.LittleEndian.Uint16(b[4:])), Hops: int(binary.LittleEndian.Uint16(b[6:]))}
}

// Bell is one Store's doorbell and its way to those of others. Its methods may be called from any goroutine. A nil Bell
// neither hears nor rings.
type Bell struct {
	path  string
	heard func(News) // called by the Bell's own goroutine

	mu     sync.Mutex
	board  *board
	slot   int // -1: none yet
	fifo   *os.File
	deaf   error
	keys   map[Key]int // how many listen
	closed bool
	done   chan struct{} // closed when the reading goroutine has ended
}

// Open opens the board of sleepers at path, or makes it with mode 0600. A slot and its FIFO are taken with the first Listen.
// heard is told what other processes ring.
func Open(path string, heard func(News)) (*Bell, error) {
	b, err := openBoard(path)
	if err != nil {
		return nil, fmt.Errorf("the doorbell's file: %w", err)
	}
	return &Bell{path: path, heard: heard, board: b, slot: -1, keys: map[Key]int{}}, nil
}

// Listen says that somebody here is about to sleep on a key. The caller must look for its news after that. ErrDeaf: nobody
// will ring.
func (b *Bell) Listen(key Key) error {
	if b == nil {
		return ErrDeaf
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.deaf != nil {
		return errors.Join(ErrDeaf, b.deaf)
	}
	if b.slot < 0 {
		if b.deaf = b.hang(); b.deaf != nil {
			return errors.Join(ErrDeaf, b.deaf)
		}
	}
	b.keys[key]++
	if b.keys[key] == 1 {
		return b.board.announce(key, b.slot)
	}
	return nil
}

// Unlisten takes back one Listen that succeeded.
func (b *Bell) Unlisten(key Key) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keys[key]--; b.keys[key] <= 0 {
		delete(b.keys, key)
		if !b.closed && b.slot >= 0 {
			b.board.retract(key, b.slot)
		}
	}
}

// Ring tells n sleepers of other processes, or all if there are fewer.
func (b *Bell) Ring(key Key, n int) {
	if b == nil || n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	from := rand.IntN(slots)
	sleepers := b.board.sleepers(key, from, n)
	left := 0
	for i, slot := range sleepers {
		share := (n + len(sleepers) - 1 - i) / len(sleepers) // n in equal parts, the larger ones first
		if !b.send(slot, News{Key: key, N: share, Hops: len(sleepers) - 1}) {
			left += share
		}
	}
	if left == 0 {
		return
	}
	for _, slot := range b.board.sleepers(key, from, slots) { // some closed meanwhile: any other will do
		if b.send(slot, News{Key: key, N: left, Hops: len(sleepers)}) {
			return
		}
	}
}

// Forward sends news on that found too few sleepers here.
func (b *Bell) Forward(n News) {
	if b == nil || n.N <= 0 || n.Hops <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	n.Hops--
	for _, s := range b.board.sleepers(n.Key, b.slot+1, 1) {
		b.send(s, n)
	}
}

func (b *Bell) fifoPath(slot int) string { return fmt.Sprintf("%s.%d", b.path, slot) }

// hang takes a slot and starts to listen to its FIFO.
func (b *Bell) hang() error {
	for slot := range slots {
		if !b.board.take(slot) {
			continue
		}
		f, err := b.board.openFIFO(b.fifoPath(slot))
		if errors.Is(err, fs.ErrExist) { // a file of somebody else's is in the way
			b.board.yield(slot)
			continue
		}
		if err != nil {
			b.board.yield(slot)
			return err
		}
		b.slot, b.fifo, b.done = slot, f, make(chan struct{})
		go b.listen(f)
		return nil
	}
	return fmt.Errorf("%d processes have one", slots)
}

func (b *Bell) listen(f *os.File) {
	defer close(b.done)
	buf := make([]byte, 64*newsSize)
	for {
		n, err := f.Read(buf)
		if err != nil {
			return // closed
		}
		for at := 0; at+newsSize <= n; at += newsSize {
			b.heard(decode(buf[at : at+newsSize]))
		}
	}
}

// Close stops listening and takes the FIFO away.
func (b *Bell) Close() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	fifo, done := b.fifo, b.done
	var err error
	if fifo != nil {
		if err = os.Remove(b.fifoPath(b.slot)); errors.Is(err, fs.ErrNotExist) { // while the slot is still ours
			err = nil // the directory was removed under us
		}
		err = errors.Join(err, fifo.Close())
	}
	err = errors.Join(err, b.board.close())
	b.mu.Unlock()
	if done != nil {
		<-done
	}
	return err
}
