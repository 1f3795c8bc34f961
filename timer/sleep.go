package timer

import "time"

// Sleep pauses the calling goroutine for at least d. A d of zero or less returns
// at once. Sleep returns early if the Scheduler is closed, unless there was no room
// for another pending timer: then it sleeps without one of the Scheduler's.
func (s *Scheduler) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	z := &sleeper{up: make(chan struct{})}
	z.owner = z
	_, _, err := s.start(s.now(), d, nodePayload(&z.node), tagNode)
	if err == ErrTooManyPending {
		// There is no error to return, and not to sleep would be wrong.
		s.clock.NewAlarm(z.abandon).Reset(d)
	} else if err != nil {
		return
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
