package timer

import (
	"context"
	"time"
)

// Sleep pauses the calling goroutine for at least d. If d is zero or less, it returns at
// once. If the Scheduler is closed meanwhile, Sleep returns early. If the Scheduler was
// closed before, Sleep still pauses, with an alarm of the Scheduler's clock.
func (s *Scheduler) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	c := make(chan time.Time, 1)
	if _, err := s.start(d, s.config.slack.forDelay(d), chanPayload(c), tagChan); err == nil {
		select {
		case <-c:
		case <-s.handedBack:
		}
		return
	}
	// Sleep cannot return an error, so it pauses. If it returned at once, a loop that
	// sleeps between attempts would spin.
	awake := make(chan struct{})
	s.clock.NewAlarm(func() { close(awake) }).Reset(d)
	<-awake
}

// SleepContext pauses the calling goroutine for at least d, and returns nil. If ctx ends
// first, it returns early with the error of ctx. If the Scheduler is closed before or
// meanwhile, it returns [ErrClosed]. If d is zero or less, it returns at once: nil, or
// the error of ctx if ctx has ended.
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
	case <-s.handedBack:
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
