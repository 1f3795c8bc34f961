//go:build !race

package timer

// RaceEnabled says that the race detector is on, which makes all ten times as slow.
const RaceEnabled = false
