// Package simulation plays all of durable in one process, from a seed: workers, clients and
// a store exchange messages over a bus that delays, loses, repeats, reorders, cuts and holds
// them. The workers are real, with their loops on their own goroutines. Time is that of a
// testing/synctest bubble.
//
// # Usage
//
//	make simulation SEEDS=1000            # seeds 1 to 1000, on memstore and on SQLite
//	make simulation SEEDS=5001-6000
//	make simulation SEED=17               # one seed, with its last steps
//	make simulation SEED=17 WITHOUT=worker1,loss STORM=5s
//
// A seed that fails is cut down to the fewest actors and faults that still fail. The last
// line of its output is the command that plays the rest again.
//
// # How it works
//
// First, a storm: the faults of the [Plan] happen while clients send all kinds of commands.
// Then the faults end. When all messages have arrived and leases have ended, there is a calm,
// in which work must be done at once, also beside slow tasks. Then the workers are stopped.
//
// The [Judge] of package storetest compares each answer of the store and its data with its
// model. The ledger knows what the model does not: which handlers run, and what clients were
// told.
//
// A copy of the store is exported during the storm, and imported into a second store over
// the same bus.
//
// # Determinism
//
// The same seed gives the same trace. Each actor, call and handler has a generator of its
// own, made of the seed and its name, so that no actor's numbers depend on the others.
// Messages arrive and handlers end at distinct moments. What happens at one moment runs on
// several goroutines; the trace sorts it. [Run] uses one processor and collects no garbage
// meanwhile, because the collector's goroutines would change the order of the others.
//
// The runtime still decides three things: which case of a select runs if several are ready,
// when it preempts a goroutine that has run for 10 ms of real time, and what random names the
// senders of commands have. The first two can change a trace if two loops of one Worker want
// the same place at the same moment. The last one never shows.
package simulation
