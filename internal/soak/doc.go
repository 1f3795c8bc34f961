// Package soak contains a test that uses all sorts of timers at the same time, while
// other goroutines compute. It takes half an hour with make soak, and a few seconds with
// make test.
//
// The test fails if a timer is lost, or fires early, twice, or after it was stopped.
//
// From time to time the test pauses until no timer is pending. It fails if memory,
// goroutines or descriptors grow from one pause to the next.
package soak
