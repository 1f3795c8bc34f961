// Package tasks is the commands that look at the tasks of a store, and change them, beside
// the program that works on it.
package tasks
