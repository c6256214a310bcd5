package iofault

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/localqueue/localqueue/chaos/preload"
)

// faults are those that are to come, without their place: in the long form all, otherwise half of the usual ones, by turns.
func faults(turn int) (all []preload.Fault) {
	if long {
		return allFaults()
	}
	for i, f := range usualFaults {
		if i%2 == turn%2 {
			all = append(all, f)
		}
	}
	return all
}

// pages are written to these; to the others SQLite writes single bytes, of which no half can be.
const pages = preload.DB | preload.WAL

var usualFaults = []preload.Fault{
	{Calls: preload.Write, Files: preload.AnyFile, Errno: syscall.EIO},
	{Calls: preload.Sync, Files: preload.AnyFile, Errno: syscall.EIO},
	{Calls: preload.Write, Files: preload.AnyFile, Errno: syscall.ENOSPC, Sticky: true},
	{Calls: preload.Write, Files: pages, Errno: syscall.ENOSPC, Torn: true},
	{Calls: preload.Sync, Files: preload.AnyFile, Errno: syscall.EIO, Sticky: true},
	{Calls: preload.Read, Files: preload.AnyFile, Errno: syscall.EIO},
	{Calls: preload.Write, Files: preload.AnyFile, Errno: syscall.EROFS, Sticky: true},
	{Calls: preload.Write, Files: preload.DB, Errno: syscall.EIO},
}

func allFaults() (all []preload.Fault) {
	for _, sticky := range []bool{false, true} {
		for _, files := range []preload.Files{preload.AnyFile, preload.WAL, preload.DB} {
			for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
				all = append(all, preload.Fault{Calls: preload.Write, Files: files, Errno: errno, Sticky: sticky},
					preload.Fault{Calls: preload.Sync, Files: files, Errno: errno, Sticky: sticky})
			}
		}
		for _, f := range []preload.Fault{
			{Calls: preload.Write, Files: pages, Errno: syscall.ENOSPC, Torn: true},
			{Calls: preload.Write, Files: preload.AnyFile, Errno: syscall.EDQUOT},
			{Calls: preload.Write, Files: preload.AnyFile, Errno: syscall.EROFS},
			{Calls: preload.Read, Files: preload.AnyFile, Errno: syscall.EIO},
			{Calls: preload.Open | preload.Map | preload.Truncate, Files: preload.AnyFile, Errno: syscall.EIO},
		} {
			f.Sticky = sticky
			all = append(all, f)
		}
	}
	return all
}

func faultText(f preload.Fault) string {
	var calls []string
	for i, name := range []string{"open", "read", "write", "truncate", "sync", "unlink", "map"} {
		if f.Calls&(1<<i) != 0 {
			calls = append(calls, name)
		}
	}
	where := map[preload.Files]string{preload.AnyFile: "any file", preload.WAL: "the WAL", preload.DB: "the database", pages: "the database or the WAL"}[f.Files]
	how := "once"
	if f.Sticky {
		how = "from then on"
	}
	if f.Torn {
		how += ", torn"
	}
	return fmt.Sprintf("%s %d of %s: errno %d (%v) %s", strings.Join(calls, "|"), f.Nth, where, f.Errno, f.Errno, how)
}

// SQLite's codes, the low byte of the extended ones.
const (
	sqliteReadOnly = 8
	sqliteIOErr    = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
)

// tells reports whether an answer tells a fault: by its sentinel, and by what of the system's error SQLite passes on.
func tells(f preload.Fault, a answer) bool {
	sentinel := "ErrIO"
	switch f.Errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		sentinel = "ErrDiskFull"
	case syscall.EROFS:
		sentinel = "ErrReadOnly"
	}
	if f.Calls&preload.Open != 0 && a.Code&0xff != sqliteIOErr { // SQLite opens for reading what it can't open for writing
		return a.is("ErrIO") || a.is("ErrReadOnly")
	}
	switch a.Code & 0xff {
	case sqliteFull: // without an errno
		return a.is(sentinel) && f.Errno == syscall.ENOSPC
	case sqliteIOErr, sqliteCantOpen, sqliteReadOnly:
		return a.is(sentinel) && a.Errno == int(f.Errno)
	case sqliteCorrupt: // SQLite takes a page that can't be read for a damaged one
		return a.is("ErrCorrupt") && f.Calls == preload.Read
	}
	return a.is("errFound") && f.Calls == preload.Read
}
