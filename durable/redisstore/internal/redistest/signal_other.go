//go:build !unix

package redistest

import "os/exec"

func useOwnGroup(*exec.Cmd) {}

// Suspend works only on Unix.
func (s *Server) Suspend() { s.tb.Fatal("redistest: Suspend works only on Unix") }

// Resume continues a suspended server.
func (s *Server) Resume() {}
