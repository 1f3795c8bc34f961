// Package scale is the command that measures what up to 100 million pending timers
// cost, with package timer and with time.AfterFunc.
package scale
