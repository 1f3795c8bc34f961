// Package conformance runs the Go toolchain's own tests of timers against
// package timer.
//
// It re-exports the clock functions of package time beside the timers of package
// timer, under the names that they have in time. The test of this package takes
// sleep_test.go and tick_test.go from the installed toolchain, has them import
// this package in place of time, and runs them. Nothing of them is kept in this
// repository.
package conformance
