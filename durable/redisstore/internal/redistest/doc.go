// Package redistest starts real Redis servers for tests, on free ports of the loopback
// interface.
//
// It runs redis-server from the PATH, or the program that REDIS_SERVER names: see
// scripts/need-redis. Without a program tests fail, or are skipped with -short.
package redistest
