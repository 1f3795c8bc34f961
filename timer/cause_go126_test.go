//go:build go1.26

package timer_test

// causeRaces: since Go 1.26, [context.Cause] looks for the error first.
const causeRaces = false
