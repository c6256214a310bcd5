//go:build planted

package queue

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// LOCALQUEUE_KILL=POINT:N sends SIGKILL to the process when it passes POINT for the Nth time; LOCALQUEUE_STOP=POINT:N
// sends SIGSTOP.
var (
	killAt = plan("LOCALQUEUE_KILL")
	stopAt = plan("LOCALQUEUE_STOP")
)

// Points are those that LOCALQUEUE_KILL and LOCALQUEUE_STOP take.
var Points = []point{afterBegin, betweenCalls, beforeCommit, afterCommit, whileRinging, whileMigrating, betweenPurges, inImport, inCheckpoint, inVacuum, inBackup, beforeRename}

type planned struct {
	at   point
	left atomic.Int64
}

func plan(env string) *planned {
	name, count, ok := strings.Cut(os.Getenv(env), ":")
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		panic(env + ": " + err.Error())
	}
	p := &planned{at: point(name)}
	p.left.Store(n)
	return p
}

func passing(p point) {
	killAt.send(p, syscall.SIGKILL)
	stopAt.send(p, syscall.SIGSTOP)
}

func (k *planned) send(p point, sig syscall.Signal) {
	if k != nil && k.at == p && k.left.Add(-1) == 0 {
		_ = syscall.Kill(os.Getpid(), sig)
		time.Sleep(100 * time.Millisecond) // another thread may take the signal: this one is not to leave the point before
	}
}
