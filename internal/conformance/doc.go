// Package conformance runs the Go toolchain's own tests of timers against package timer.
//
// The test takes sleep_test.go and tick_test.go from the installed toolchain, and makes
// them import this package instead of time. So this package has the names of package time
// that they use, with the timers of package timer.
package conformance
