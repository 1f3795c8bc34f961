//go:build unix

package child

import "syscall"

// OwnGroup has a process in a group of its own, which a terminal's signals do not reach.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signaled reports whether a signal has ended the process.
func (c *Process) signaled() bool {
	status, ok := c.Cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}
