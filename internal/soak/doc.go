// Package soak contains a test that uses all sorts of timers at once, beside goroutines
// that compute: for half an hour with make soak, and for a few seconds with make test. A
// ledger records when each timer is due, and whether it has fired or was stopped. The
// test fails if a timer fires early, twice, or after it was stopped, or if it is lost.
// From time to time the test stops starting timers, and lets the pending ones fire. It
// fails if memory, goroutines or descriptors grow from one such pause to the next.
package soak
