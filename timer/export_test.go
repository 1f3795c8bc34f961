package timer

// WithWheelSize sets the number of slots in each level of the wheels, so that few timers
// use many levels.
func WithWheelSize(n int) Option { return option(func(c *config) { c.slotsPerLevel = n }) }
