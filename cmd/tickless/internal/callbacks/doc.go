// Package callbacks is the command that schedules HTTP callbacks on Redis and has
// worker processes deliver them, one of which it kills.
package callbacks
