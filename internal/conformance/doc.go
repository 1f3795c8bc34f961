// Package conformance runs the Go toolchain's own tests of timers against package timer.
//
// It re-exports the clock functions of package time and the timers of package timer,
// under the names that they have in time. The test of this package takes sleep_test.go
// and tick_test.go from the installed toolchain, makes them import this package instead
// of time, and runs them. This repository contains no copy of them.
package conformance
