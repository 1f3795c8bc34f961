// Package soak contains a test that uses all sorts of timers at once, while other
// goroutines compute. It takes half an hour with make soak, and a few seconds with make
// test.
//
// A ledger records when each timer is due, and whether it has fired or was stopped. The
// test fails if a timer is lost, or fires early, twice, or after it was stopped.
//
// From time to time the test pauses: it starts no timers, and lets the pending ones fire.
// It fails if memory, goroutines or descriptors grow from one pause to the next.
package soak
