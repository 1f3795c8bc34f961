//go:build unix

package redistest

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a Ctrl-C at the terminal from the servers, which the test ends.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Suspend freezes the server, as a host does that has no time for it.
func (s *Server) Suspend() {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		s.tb.Fatalf("redistest: suspend: %v", err)
	}
}

// Resume ends a Suspend.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }
