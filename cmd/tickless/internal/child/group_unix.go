//go:build unix

package child

import "syscall"

// OwnGroup has a process in a group of its own, which a terminal's signals do not reach.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
