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
// in which work must be done without delay. Finally the workers are stopped.
//
// The [Judge] of package storetest compares each answer of the store and its data with its
// model. The ledger knows what the model does not: which handlers run, and what clients were
// told.
//
// # Determinism
//
// The same seed gives the same trace. Each actor, call and handler has a generator of its
// own, made of the seed and its name, so that no actor's numbers depend on the others.
// Messages arrive and handlers end at distinct moments. What happens at one moment runs on
// several goroutines in any order; the trace sorts it. The runtime still chooses among the
// ready cases of a select and among timers of one moment: two loops of one Worker whose
// timers fire at one moment may take their places in another order.
package simulation
