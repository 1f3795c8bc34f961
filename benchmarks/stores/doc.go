// Package stores compares the stores of package durable with an SQLite table that a user
// might write instead. `make bench MODE=stores` runs it.
//
// Tasks have bodies of 256 bytes. SQLite syncs tasks to disk before it acknowledges them.
// Redis syncs its log once a second.
package stores
