package timer

// WithSweepLeast has dead entries swept when there are so many.
func WithSweepLeast(n int) Option { return option(func(c *config) { c.sweepLeast = n }) }
