package timer

import "time"

// Sleep pauses the calling goroutine for at least d. A d of zero or less returns
// at once. Sleep returns early if the Scheduler is closed meanwhile. If it was
// closed before, or has too many timers pending, Sleep pauses all the same, on
// package time or on the clock that was given by [WithClock].
func (s *Scheduler) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	z := &sleeper{up: make(chan struct{})}
	z.owner = z
	if _, _, err := s.place(s.now(), d, nodePayload(&z.node), tagNode); err != nil {
		// There is no error to return. Were it not to sleep, a loop that waits
		// between two attempts would wait no more.
		s.clock.NewAlarm(z.abandon).Reset(d)
	}
	<-z.up
}

// sleeper is a goroutine in Sleep.
type sleeper struct {
	node
	up chan struct{}
}

func (z *sleeper) expireLocked(*shard, moment) func() {
	close(z.up)
	return nil
}

func (z *sleeper) pendingFunc() func() { return nil }
func (z *sleeper) abandon()            { close(z.up) }
