// Package conformance runs the Go toolchain's own tests of timers against package timer.
//
// The test takes sleep_test.go and tick_test.go from the installed toolchain, makes them
// import this package instead of time, and runs them. So this package has the names of
// package time that they use, with the timers of package timer. This repository contains
// no copy of them.
package conformance
