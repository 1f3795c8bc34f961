// Package redistest starts Redis servers for tests: real ones, on free ports of
// the loopback interface, with their files in a temporary directory, and ends
// them by their process ids.
//
// The program redis-server must be in the PATH, or named by REDIS_SERVER: see
// scripts/need-redis. Without it tests fail, unless they run with -short.
package redistest
