package delayqueue

import (
	"time"

	"github.com/tickless/tickless/clock"
)

// An Option changes how [New] makes a queue.
type Option interface{ apply(*config) }

type config struct {
	clock clock.Clock
	epoch time.Time // zero: when the queue is made
}

type option func(*config)

func (o option) apply(c *config) { o(c) }

// WithClock makes the queue follow c. The default, also for a nil c, is
// [clock.System]. Inside Now, NewAlarm, Reset and Stop, which are called with
// the queue's lock held, c must not call the queue back.
func WithClock(c clock.Clock) Option {
	return option(func(cfg *config) {
		if c != nil {
			cfg.clock = c
		}
	})
}

// WithEpoch sets the moment from which OfferAt, PollAt and Head count nanoseconds. It must be
// a reading of the queue's clock. The default is when the queue is made.
func WithEpoch(t time.Time) Option {
	return option(func(cfg *config) { cfg.epoch = t })
}
