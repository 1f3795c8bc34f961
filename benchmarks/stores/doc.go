// Package stores compares the stores of package durable with a table in SQLite or PostgreSQL
// that a user might write instead. `make bench MODE=stores` and `MODE=postgres`
// run it.
//
// Tasks have bodies of 256 bytes. SQLite and PostgreSQL sync tasks to disk before they acknowledge them.
// Redis syncs its log once a second.
package stores
