//go:build unix

package redistest

import (
	"os/exec"
	"syscall"
)

// ownGroup protects the servers from a Ctrl-C at the terminal: the test stops them.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Suspend freezes the server, as an overloaded host may do.
func (s *Server) Suspend() {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		s.tb.Fatalf("redistest: suspend: %v", err)
	}
}

// Resume ends a Suspend.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }
