// Package redistimer runs tasks later, on any of many processes, and keeps them
// in Redis: what package timer is within a process, for tasks that must outlive
// it or be shared.
//
// # Usage
//
//	client := redistimer.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}))
//
//	// Here, or in any other process:
//	w := redistimer.NewWorker(client)
//	w.Handle("remind", func(ctx context.Context, d redistimer.Delivery) error {
//		return send(ctx, d.Key, d.Body)
//	})
//	go w.Run(ctx)
//
//	// Anywhere:
//	client.Schedule(ctx, redistimer.Task{Key: "order-17", Handler: "remind", Body: body},
//		redistimer.After(30*time.Minute))
//	client.Reschedule(ctx, "order-17", redistimer.After(time.Hour))
//	client.Cancel(ctx, "order-17")
//
// # How it works
//
// A queue is spread over shards, by the hash of a task's key, each with keys of
// its own in Redis under one hash tag. All that changes a shard is a script, so
// that a task is in exactly one place at any time: pending, running or dead. A
// worker does not poll. For each shard one worker has a local timer, of package
// timer, set for the first task that is due, and is woken through a blocking
// command if an earlier one is scheduled. What is due is decided by the clock of
// Redis alone.
//
// # Guarantees
//
//   - A task that was scheduled without an error runs at least once, unless it is
//     cancelled, replaced or removed by hand, as long as the server keeps what it
//     has acknowledged.
//   - Never early, by the clock of Redis.
//   - A worker that crashes, hangs or is cut off loses nothing: its tasks go to
//     others when their leases have run out. What comes again has a larger fencing
//     token and the same idempotency key.
//   - If Cancel says Removed the task does not run any more.
//   - After a downtime everything that was due runs, the oldest first, or as
//     [Missed] says.
//   - Dead letters stay until somebody takes them away.
//
// A server that loses what it has acknowledged loses tasks: without AOF at a
// crash, and in a failover, which is asynchronous. [Client.Check] and
// [Replicated] are for that.
//
// # Concurrency
//
// Clients and Workers may be used by any number of goroutines. Handlers run
// concurrently, each on a goroutine of its own. Two attempts at one task do not
// overlap unless a lease was lost.
//
// # Complexity
//
// Scheduling, cancelling and finishing are O(log n) in a shard's tasks. A pending
// task with a body of 205 bytes takes about 430 bytes in Redis.
//
// # When not to use it
//
// Where tasks may be lost with their process, package timer does the same in
// nanoseconds. For queues of jobs that are due at once and that need priorities
// or rate limits, a job queue is the better tool.
//
// It needs Redis 6.2 or later (it is tested on 7.0, and not on Valkey): one server, several under Sentinel, or
// a Redis Cluster, of which one queue uses all masters.
package redistimer
