package main

import "math"

// Costs, in nanoseconds: what BenchmarkHold and BenchmarkPollerExpiry of package timer
// measured on a virtual machine with two procs (AMD EPYC, go1.26.8).
const (
	// start and stop are how long each holds the shard's lock: one of a million others.
	start = 86
	stop  = 197
	// fire is what a timer that falls due costs the poller, move what each level does
	// that it comes down.
	fire = 155
	move = 355
	// offer and poll are how long the queue's lock is held to file a bucket and to
	// take it out.
	offer = 150
	poll  = 200
	// transfer is what it takes to have a cache line that another proc has written:
	// 40 within a chip, 100 between two.
	transfer = 70
	// queued is how long the queue's lock is held for a bucket, from proc to proc.
	queued = offer + poll + 2*transfer
	// callback is for how long a worker that takes a callback keeps the others from it:
	// they take from one batch, with one counter.
	callback = 2 * transfer
)

const (
	tick  = 100_000
	batch = 256 // timers at most in one hold of a shard's lock
	// homesPerProc, shardsPerProc, manyHomes and procsPerHelper are those of package timer.
	homesPerProc   = 2
	shardsPerProc  = 8
	manyHomes      = 64
	procsPerHelper = 4
)

// bucket is what a bucket costs the poller besides its timers: it grows with the number
// of shards, since their buckets wait in one heap.
func bucket(shards int) float64 { return 130 + 141*math.Log2(float64(shards)) }
