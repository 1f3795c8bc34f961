package timer

import (
	"context"
	"time"
)

// Sleep pauses the calling goroutine for at least d. If the Scheduler is closed
// meanwhile, Sleep returns early. On a closed Scheduler it still pauses.
func (s *Scheduler) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	c := make(chan time.Time, 1)
	if _, err := s.start(d, s.config.slack.forDelay(d), chanPayload(c), tagChan); err == nil {
		select {
		case <-c:
		case <-s.handBackDone:
		}
		return
	}
	// Sleep cannot return an error, so it pauses. If it returned immediately, a loop that
	// sleeps between attempts would spin.
	wokenUp := make(chan struct{})
	s.clock.NewAlarm(func() { close(wokenUp) }).Reset(d)
	<-wokenUp
}

// SleepContext pauses the calling goroutine for at least d, and returns nil. If ctx ends
// first, it returns the error of ctx. If the Scheduler is closed, it returns [ErrClosed].
func (s *Scheduler) SleepContext(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	c := make(chan time.Time, 1)
	h, err := s.start(d, s.config.slack.forDelay(d), chanPayload(c), tagChan)
	if err != nil {
		return err
	}
	select {
	case <-c:
		return nil
	case <-s.handBackDone:
	case <-ctx.Done():
		if h.Stop() {
			return ctx.Err()
		}
	}
	select {
	case <-c: // the timer has fired meanwhile
		return nil
	default:
		return ErrClosed
	}
}
