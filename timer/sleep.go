package timer

import (
	"context"
	"time"
)

// Sleep pauses the calling goroutine for at least d. A d of zero or less returns
// at once. Sleep returns early if the Scheduler is closed meanwhile. If it was
// closed before, Sleep pauses all the same, on package time or on the clock that was
// given by [WithClock].
func (s *Scheduler) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	c := make(chan time.Time, 1)
	if _, err := s.start(d, s.config.slack.of(d), chanPayload(c), tagChan); err == nil {
		select {
		case <-c:
		case <-s.done:
		}
		return
	}
	// There is no error to return. Were it not to sleep, a loop that waits between two
	// attempts would wait no more.
	awake := make(chan struct{})
	s.clock.NewAlarm(func() { close(awake) }).Reset(d)
	<-awake
}

// SleepContext pauses the calling goroutine for at least d, and returns nil. It
// returns early with the error of ctx if that ends first, and with [ErrClosed] if the
// Scheduler is closed meanwhile, or was before. For a d of zero or less it returns at
// once, with the error of ctx if that has ended.
func (s *Scheduler) SleepContext(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	c := make(chan time.Time, 1)
	h, err := s.start(d, s.config.slack.of(d), chanPayload(c), tagChan)
	if err != nil {
		return err
	}
	select {
	case <-c:
		return nil
	case <-s.done:
	case <-ctx.Done():
		if h.Stop() {
			return ctx.Err()
		}
	}
	select {
	case <-c: // it has fired just now
		return nil
	default:
		return ErrClosed
	}
}
