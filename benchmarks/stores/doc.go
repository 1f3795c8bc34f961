// Package stores compares the stores of package durable with what one might write
// instead: an SQLite table with an index on the due time. `make bench MODE=stores` runs
// it.
//
// Each measurement has a new folder. Tasks have 256 bytes and are synced to disk when
// they are acknowledged, except in memory and on Redis: the server syncs its log once a
// second (appendfsync everysec), as by default.
package stores
