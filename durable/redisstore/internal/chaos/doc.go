// Package chaos tests redisstore under faults. It kills, freezes and disconnects real
// servers and worker processes. Long tests run only with TICKLESS_CHAOS=long, which `make
// chaos` sets.
//
// Every case checks that its fault has happened. Most cases also check that:
//
//   - every acknowledged task was delivered or is a dead letter,
//   - no task was delivered early,
//   - there are no more duplicates than expired leases,
//   - Repair finds nothing.
package chaos
