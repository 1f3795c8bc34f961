package delayqueue

import (
	"time"

	"github.com/tickless/tickless/clock"
)

// An Option configures a queue made by [New].
type Option interface{ apply(*config) }

type config struct {
	clock clock.Clock
	epoch time.Time // zero: the time when the queue is made
}

type option func(*config)

func (o option) apply(c *config) { o(c) }

// WithClock makes the queue follow c. If c is nil or no clock is given, the queue follows
// [clock.System]. The queue calls c with its lock held, so c must not call the queue from
// Now, NewAlarm, Reset or Stop.
func WithClock(c clock.Clock) Option {
	return option(func(cfg *config) {
		if c != nil {
			cfg.clock = c
		}
	})
}

// WithEpoch sets the moment from which OfferAt, PollAt and Head count nanoseconds. t must
// be a reading of the queue's clock. The default is the time when the queue is made.
func WithEpoch(t time.Time) Option {
	return option(func(cfg *config) { cfg.epoch = t })
}
