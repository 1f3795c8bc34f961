//go:build unix

package redistest

import (
	"os/exec"
	"syscall"
)

// useOwnGroup puts the server into its own process group, so that Ctrl-C at the terminal
// does not end it.
func useOwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Suspend freezes the server, like an overloaded host.
func (s *Server) Suspend() {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		s.tb.Fatalf("redistest: suspend: %v", err)
	}
}

// Resume continues a suspended server.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }
