package exported

import "time"

type Server struct {
	Idle *time.Timer
	idle *time.Timer
}

func (s *Server) Start() {
	s.Idle = time.AfterFunc(1, nil) // want `time.AfterFunc stays: Idle is part of the API of package exported`
	s.idle = time.AfterFunc(1, nil) // want `can be`
}

type hidden struct{ Idle *time.Timer }

func (h *hidden) Start() {
	h.Idle = time.AfterFunc(1, nil) // want `can be`
}

func NewIdle() *time.Timer { return time.AfterFunc(1, nil) } // want `stays: NewIdle is part of the API`

var Idle = time.NewTimer(1) // want `stays: Idle is part of the API`

func stop() { Idle.Stop() }

type Starter interface {
	Start(d time.Duration) *time.Timer
}

type Func func() *time.Timer

var f Func = func() *time.Timer { return time.AfterFunc(1, nil) } // want `stays: Func is part of the API`

type Timer = time.Timer

var own *Timer = time.AfterFunc(1, nil) // want `stays: Timer is part of the API`
