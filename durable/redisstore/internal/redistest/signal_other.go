//go:build !unix

package redistest

import "os/exec"

func ownGroup(*exec.Cmd) {}

// Suspend only works on Unix.
func (s *Server) Suspend() { s.tb.Fatal("redistest: Suspend is for Unix alone") }

// Resume ends a Suspend.
func (s *Server) Resume() {}
