package queue

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SQLite's locks on the -shm file, by byte (sqlite.org/walformat.html, "WAL locks"): who writes has the first, who reads
// one of five. Who has the file open and has used it so far shares one more.
const (
	walWriteLock = 120
	walReadLock  = 123
	walReadLocks = 5
	walOpenLock  = 128
)

// steadyReaders are the processes in a read transaction for some 200 ms, as far as the system tells: who comes and goes
// doesn't hold the WAL back. The system's table may miss a line while others change it, so that being seen most times is
// enough.
func steadyReaders(ctx context.Context, shm string) (pids []int, err error) {
	const looks, most = 12, 9
	seen := map[int]int{}
	for range looks {
		for _, pid := range lockHolders(shm, "READ", walReadLock, walReadLock+walReadLocks-1) {
			seen[pid]++
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(seen)) {
		if seen[pid] >= most {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// writerOf is the process in a write transaction now; 0 if there is none or the system doesn't tell.
func writerOf(shm string) int {
	if pids := lockHolders(shm, "WRITE", walWriteLock, walWriteLock); len(pids) > 0 {
		return pids[0]
	}
	return 0
}

// lockHolders reads /proc/locks: the file itself must not be opened, for closing it would drop SQLite's locks in this process.
// A line: "2: POSIX  ADVISORY  READ 12711 fe:00:9978174 128 128".
func lockHolders(path, kind string, first, last int) (pids []int) {
	st, err := os.Stat(path)
	if err != nil {
		return nil
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	dev := uint64(sys.Dev) //nolint:unconvert // its type differs by system
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(dev), unix.Minor(dev), sys.Ino)
	table, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) != 8 || f[1] != "POSIX" || f[3] != kind || f[5] != file { // a process that waits has one field more
			continue
		}
		pid, err1 := strconv.Atoi(f[4])
		from, err2 := strconv.Atoi(f[6])
		to, err3 := strconv.Atoi(f[7])
		if err1 == nil && err2 == nil && err3 == nil && pid > 0 && from <= last && to >= first && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}
