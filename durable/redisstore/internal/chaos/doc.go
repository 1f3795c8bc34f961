// Package chaos has only tests: faults that redisstore has to survive, with real
// servers and worker processes that are killed, frozen and cut off. What takes
// long runs only with TICKLESS_CHAOS=long, as `make chaos` has it, which shows
// what each case did and counted.
//
// Every case asserts that its fault has happened. Unless it says otherwise it
// asserts as well that every task that was acknowledged has been delivered or is
// a dead letter, that none came early, that there are no more duplicates than
// leases that ran out, and that check-and-repair finds nothing.
package chaos
