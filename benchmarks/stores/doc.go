// Command benchmarks measures the stores of package durable, beside what
// one might write instead: a table in SQLite with an index on when tasks are due.
//
//	go run .                                                everything, medians of 5 runs
//	go run . --sides file,table --work burst                some of it
//	go run . --sides file,table --runs 1 --time 500ms       a quick look
//	go run . --out results.md                               the table in a file
//
// Each measurement is a process of its own, with a new directory, and the sides take
// turns. Figures are of tasks with 256 bytes that are acknowledged: on disk and synced,
// except in memory and on Redis, whose server writes its log once a second (appendfsync
// everysec), as it does by default.
package main
