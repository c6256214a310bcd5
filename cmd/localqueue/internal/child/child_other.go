//go:build unix && !linux

package child

import "syscall"

// attributes: a group of its own. This system can't tie the command's life to ours.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit can't be done here without reaping the process.
func awaitExit(int) bool { return false }
