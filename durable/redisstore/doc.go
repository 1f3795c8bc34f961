// Package redisstore is a store for package durable that keeps its tasks in Redis: on
// one server, on servers monitored by Sentinels, or on a Redis Cluster. It is not
// tested with Valkey.
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
//   - Tokens grow across restarts. In a failover they grow unless the new server lacks the
//     latest claims and its clock is behind.
//   - If a crash of the server cuts off a script's writes in the AOF, Repair can correct the
//     result.
//
// A server that loses acknowledged data loses tasks: in a crash without AOF, and in a
// failover, because replication is asynchronous. [Store.Check] warns of such settings,
// and [WithLossHandler] reports a server that was emptied or has returned without its
// data. What a failover loses is not reported.
//
// # How it works
//
// The hash of a task's key selects one of the store's shards. The Redis keys of a shard
// share a hash tag, so that they are on one node of a Cluster. Scripts make all
// changes: scripts/begin.lua describes the stored data and the life of a task.
//
// Workers do not poll. For each shard one worker has set its timer for the first due
// task, and a blocking command wakes a worker if an earlier task is scheduled. A
// wake-up can be lost with a connection or with the worker that got it, so every worker
// also checks every few seconds: see [WithRecheck].
//
// # Concurrency
//
// A Store may be used from any goroutine. Commands that are sent at the same time share
// a round trip.
//
// # Complexity
//
// Scheduling, cancelling and finishing are O(log n) in a shard's tasks, and take one
// round trip. A server does nothing else while a script runs: one with 250 tasks takes
// 1 to 3 ms.
//
// # When not to use it
//
// If one process is enough, a store in a file needs no server. If tasks need not
// outlive the process, package timer is much cheaper.
package redisstore
