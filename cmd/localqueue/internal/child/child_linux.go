package child

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes: a group of its own, and SIGKILL when the thread that started the command ends, so also when this process
// is killed. (Only for the command itself; its children, and set-user-ID programs, are not reached.)
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits for the process to exit and leaves it to be reaped by Wait.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
