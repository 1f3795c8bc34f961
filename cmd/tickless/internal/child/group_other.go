//go:build !unix

package child

import "syscall"

// OwnGroup has a process in a group of its own where the system has such groups.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
