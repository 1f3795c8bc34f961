// Package scale is the command that measures the cost of up to 100 million pending
// timers, with package timer and with time.AfterFunc.
package scale
