//go:build !go1.26

package timer_test

// causeRaces: up to Go 1.25, [context.Cause] looks for the cause first and then for the
// error: of a context that ends in between it returns the error.
const causeRaces = true
