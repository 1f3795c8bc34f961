// Package soak holds a test that uses timers of all kinds at once, beside goroutines
// that compute, for as long as it is told to: make soak, half an hour. A ledger knows
// of each timer when it is due, and whether it has fired or was stopped. The test fails
// at the first timer that fires early, twice, or after it was stopped, or that is lost.
// Now and then it rests: nothing is started, and what is pending fires. It fails if
// memory, goroutines or descriptors grow from rest to rest. A run of a few seconds is part
// of make test.
package soak
