// Package redisstore is a store for package durable that keeps its tasks in Redis: on one
// server, on servers monitored by Sentinels, or on a Redis Cluster. Valkey is not tested.
//
// # Usage
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	client := durable.New(redisstore.New(rdb))
//
// # Guarantees
//
// The Store keeps the promises of package store, if the server keeps what it has
// acknowledged:
//
//   - Tasks are due by the clock of the server with their shard.
//   - Fencing tokens grow across restarts. They may decrease only in a failover to a server
//     that lacks the latest claims and whose clock is behind.
//   - A crash of the server may cut off a script's writes in the AOF. Workers correct
//     this within a minute: see [Store.Repair].
//
// A server may lose acknowledged tasks in a crash without AOF. It may also lose some in a
// failover, because replication is asynchronous. [Store.Check] warns of such settings.
// [WithLossHandler] reports a server that has lost all its tasks. It does not report
// tasks that a failover loses.
//
// # How it works
//
// The hash of a task's key selects one of the store's shards. The Redis keys of a shard
// share a hash tag, so that they are on one node of a Cluster. Scripts make all changes:
// scripts/begin.lua describes the stored data and the life of a task.
//
// Workers do not poll. In each shard one worker sets its timer for the first due task. If
// an earlier task is scheduled, a blocking command wakes a worker. This wake-up can be
// lost with its connection, so every worker also checks every few seconds: see
// [WithRecheck].
//
// # Concurrency
//
// A Store may be used from any goroutine. Commands that are sent at the same time share a
// round trip.
//
// # Complexity
//
// Scheduling, cancelling and finishing are O(log n) in a shard's tasks, and take one
// round trip. A server does nothing else while a script runs. A script for 250 tasks
// takes 1 to 3 ms.
//
// # When not to use it
//
// If one machine is enough, package sqlitestore needs no server. If tasks need not
// outlive the process, package timer is much cheaper.
package redisstore
