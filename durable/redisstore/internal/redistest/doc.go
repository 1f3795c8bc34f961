// Package redistest starts real Redis servers for tests, on free ports of the loopback
// interface, with their files in a temporary folder, and stops them by their process
// ids.
//
// The program redis-server must be in the PATH or named by REDIS_SERVER: see
// scripts/need-redis. Without it tests fail, unless they run with -short.
package redistest
