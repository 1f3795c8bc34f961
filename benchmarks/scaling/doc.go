// Command scaling reckons, from what was measured on two procs, at how many procs the
// one poller of a Scheduler, a shard's lock or the queue's lock becomes the limit. It
// writes the tables of docs/scaling.md between their markers:
//
//	go run ./scaling -page ../docs/scaling.md
//
// It is a simulation of locks and of a poller, tick by tick, with a fixed seed: the same
// costs give the same tables.
package main
