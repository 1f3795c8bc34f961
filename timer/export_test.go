package timer

// WithSweepLeast has dead entries swept when there are so many.
func WithSweepLeast(n int) Option { return option(func(c *config) { c.sweepLeast = n }) }

// WithStripedFrom has a shard with n entries of Timers count those that are stopped and
// reset in stripes.
func WithStripedFrom(n int) Option { return option(func(c *config) { c.stripedFrom = n }) }

// WithWheelSize sets the number of slots in each level of the wheels, so that few timers
// come across many levels.
func WithWheelSize(n int) Option { return option(func(c *config) { c.wheelSize = n }) }
