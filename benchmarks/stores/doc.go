// Package stores measures the stores of package durable beside what one might write
// instead: a table in SQLite with an index on when tasks are due. `make bench MODE=stores`
// runs it.
//
// Each measurement has a new directory. Tasks have 256 bytes and are acknowledged: synced
// to the disk, except in memory and on Redis, whose server writes its log once a second
// (appendfsync everysec), as it does by default.
package stores
