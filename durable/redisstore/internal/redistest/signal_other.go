//go:build !unix

package redistest

import "os/exec"

func ownGroup(*exec.Cmd) {}

// Suspend is for Unix alone.
func (s *Server) Suspend() { s.tb.Fatal("redistest: Suspend is for Unix alone") }

// Resume ends a Suspend.
func (s *Server) Resume() {}
