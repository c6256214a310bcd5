//go:build unix && !linux

package bench

import "syscall"

// attributes: where the system can't kill a process with its parent, the pipe from the parent has to tell it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
