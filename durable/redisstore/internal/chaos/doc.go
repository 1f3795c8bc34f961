// Package chaos tests redisstore under faults. It uses real servers, and worker processes
// that are killed, frozen and disconnected. Long tests run only with TICKLESS_CHAOS=long,
// which `make chaos` sets. They log what happened in each case, with its counters.
//
// Every case checks that its fault has happened. Unless the case says otherwise, it also
// checks that:
//
//   - every acknowledged task was delivered or is a dead letter,
//   - no task was delivered early,
//   - there are no more duplicates than expired leases,
//   - Repair finds nothing.
package chaos
