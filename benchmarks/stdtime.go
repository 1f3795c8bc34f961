package benchmarks

import "time"

// Time is package time, the baseline.
var Time = Maker{Name: "time", New: newStdTime}

type stdTime struct {
	timers []*time.Timer
}

func newStdTime(slots int) Impl { return &stdTime{timers: Touched[*time.Timer](slots)} }

func (s *stdTime) Start(slot int, d time.Duration, f func()) {
	s.timers[slot] = time.AfterFunc(d, f)
}

func (s *stdTime) Stop(slot int) bool { return s.timers[slot].Stop() }

func (s *stdTime) Reset(slot int, d time.Duration) bool { return s.timers[slot].Reset(d) }

func (s *stdTime) Close() {
	for _, t := range s.timers {
		if t != nil {
			t.Stop()
		}
	}
}
