package exported

import "time"

type Server struct {
	Idle *time.Timer
	idle *time.Timer
}

func (s *Server) Start() {
	s.Idle = time.AfterFunc(1, nil) // want `stays: Idle is exported: another package may use it`
	s.idle = time.AfterFunc(1, nil) // want `can be`
}

type hidden struct{ Idle *time.Timer }

func (h *hidden) Start() {
	h.Idle = time.AfterFunc(1, nil) // want `can be`
}

func NewIdle() *time.Timer { return time.AfterFunc(1, nil) } // want `stays: NewIdle is exported: another package may use it`

var Idle = time.NewTimer(1) // want `stays: Idle is exported: another package may use it`

func stop() { Idle.Stop() }

type Starter interface {
	Start(d time.Duration) *time.Timer
}

type Func func() *time.Timer

var f Func = func() *time.Timer { return time.AfterFunc(1, nil) } // want `stays: Func is exported: another package may use it`

type Timer = time.Timer

var own *Timer = time.AfterFunc(1, nil) // want `stays: Timer is exported: another package may use it`
