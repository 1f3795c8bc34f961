// Package redistest starts real Redis servers for tests, on free ports of the loopback
// interface. Their files are in temporary folders.
//
// The program redis-server must be in the PATH, or REDIS_SERVER must name it: see
// scripts/need-redis. Without it tests fail, unless they run with -short.
package redistest
