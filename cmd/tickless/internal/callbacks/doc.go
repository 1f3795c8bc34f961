// Package callbacks is the command that schedules HTTP callbacks in a directory or on
// Redis, has worker processes deliver them, and kills one of these.
package callbacks
