//go:build race

package timer

// RaceEnabled is true if the race detector is on, which slows everything down tenfold.
const RaceEnabled = true
