//go:build !unix

package child

import "syscall"

// OwnGroup has a process in a group of its own where the system has such groups.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// signaled reports whether a signal has ended the process: there are none.
func (c *Process) signaled() bool { return false }
