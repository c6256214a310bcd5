package bench

import "syscall"

// attributes let a process die with the thread that started it, so also when this process is killed. Its group is its own,
// for what a terminal sends to the group in the foreground is for us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
