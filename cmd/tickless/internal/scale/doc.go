// Package scale is the command that keeps up to 100 million timers pending and
// measures what they cost, with package timer and with time.AfterFunc.
package scale
