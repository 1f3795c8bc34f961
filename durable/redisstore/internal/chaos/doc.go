// Package chaos tests redisstore under faults, with real servers and worker processes
// that are killed, frozen and disconnected. Long tests run only with
// TICKLESS_CHAOS=long, which `make chaos` sets, and log what each case did and counted.
//
// Every case checks that its fault has happened. Unless it says otherwise, it also
// checks that every acknowledged task was delivered or is a dead letter, that none came
// early, that there are no more duplicates than expired leases, and that Repair finds
// nothing.
package chaos
