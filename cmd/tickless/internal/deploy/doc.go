// Package deploy tests what a deploy does to repeating tasks: versions of a program come and
// go, with real processes, on each store.
package deploy
