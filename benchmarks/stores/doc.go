// Command benchmarks measures the stores of package durable, beside what they stand on
// and what one might write instead: bare Pebble that stores the same keys and values, and
// a table in SQLite with an index on when tasks are due.
//
//	go run -tags sqlite .                                     everything, medians of 5 runs
//	go run -tags sqlite . --sides disk,sqlite --work burst    some of it
//	go run -tags sqlite . --out results.md                    the table in a file
//	go run . --sides disk,pebble --runs 1 --time 500ms        a quick look
//
// SQLite takes a minute to compile, so it needs the tag.
//
// Each measurement is a process of its own, with a new directory, and the sides take
// turns. Figures are of tasks with 256 bytes that are acknowledged: on disk and synced,
// except in memory and on Redis, whose server writes its log once a second (appendfsync
// everysec), as it does by default.
package main
