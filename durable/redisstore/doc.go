// Package redisstore is a store for package durable that keeps its tasks in Redis: on one
// server, on those that Sentinels watch over, or on a Cluster. It was not tested on Valkey.
//
// # Usage
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	client := durable.New(redisstore.New(rdb))
//
// # Guarantees
//
// Those of package store, as long as the server keeps what it has acknowledged:
//
//   - The clock is that of the server that has the shard.
//   - Tokens grow over restarts, and over failovers unless the new server lacks the
//     latest claims and its clock is behind.
//   - Scripts leave nothing that Repair cannot tell and put right, wherever a crash of
//     the server has torn what it wrote to its AOF.
//
// A server that loses what it has acknowledged loses tasks: without AOF at a crash, and
// in a failover, which is asynchronous. [Store.Check] warns of it, and [WithLossHandler]
// reports a server that was emptied or came back without its data. What a failover loses is
// not reported.
//
// # How it works
//
// Tasks are spread over shards, by the hash of their keys. Each shard has keys of its own
// in Redis, all with one hash tag, so that they are on one node of a Cluster. All that
// changes a shard is a script: scripts/begin.lua says what is stored, and draws how a
// task moves.
//
// Nobody polls. For each shard one worker has its timer set for the first task that is
// due, and a blocking command wakes a worker if an earlier one is scheduled. In case a
// wake-up was lost, with a connection or with the worker that took it, every worker looks
// by itself every few seconds: see [WithRecheck].
//
// # Concurrency
//
// A Store may be used from any goroutine. Commands that come at the same time are sent
// together.
//
// # Complexity
//
// Scheduling, cancelling and finishing are O(log n) in a shard's tasks, and one round
// trip. A server does nothing else while a script runs: 250 tasks take 1 to 3 ms.
//
// # When not to use it
//
// Where one process is enough, a store in a file needs no server. Package timer is
// cheaper by far where tasks need not outlive the process.
package redisstore
