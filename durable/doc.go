// Package durable runs tasks later that a store keeps: what package timer is within a
// process, for tasks that must outlive it or be shared by several.
//
// # Usage
//
//	client := durable.New(memstore.New()) // or another store
//
//	// Here, or in any other process that has the store:
//	w := durable.NewWorker(client)
//	w.Handle("remind", func(ctx context.Context, d durable.Delivery) error {
//		return send(ctx, d.Key, d.Body)
//	})
//	ended := make(chan error, 1)
//	go func() { ended <- w.Run(ctx) }() // when ctx has ended, wait for it: it hands back what it has not begun
//
//	// Anywhere:
//	_, err := client.Schedule(ctx, durable.Task{Key: "order-17", Handler: "remind", Body: body},
//		durable.After(30*time.Minute))
//	if err != nil {
//		return err // not scheduled, or not known to be: see UnknownError
//	}
//	client.Reschedule(ctx, "order-17", durable.After(time.Hour))
//	client.Schedule(ctx, durable.Task{Key: "report", Handler: "report", Cron: "0 9 * * 1-5", Zone: "Europe/Berlin"},
//		durable.Next(), durable.OnlyChanged())
//	client.Cancel(ctx, "order-17")
//
// [HandleJSON] decodes the body for the handler. A Task without a Key gets one of [NewKey].
// [WithDeadHook] tells of dead letters as they are made. [Client.List] goes over tasks and dead
// letters by state, handler, prefix, time or error, and [Client.Page] does so page by page.
//
// Package callback is the handler for tasks that are HTTP requests.
//
// # How it works
//
// A store keeps the tasks: package store says what it promises, and draws the life of a
// task. Package sqlitestore keeps them in a file, redisstore on a Redis, and memstore in the
// process' memory. The tasks are spread over
// the store's shards, by the hash of their keys. For each shard a [Worker] has a loop,
// which does one round after the other: it reports what was run, prolongs the leases of
// what runs, and claims what is due, all at once. It does not poll. The store says when
// the next task is due, and wakes it for an earlier one.
//
// # Guarantees
//
//   - A task that was scheduled without an error runs at least once, as long as the store
//     keeps what it has acknowledged and a worker has its handler. It does not if it is
//     cancelled, replaced or removed by hand, or is late and [Missed] says so.
//   - Never early, by the store's clock.
//   - A slow handler does not starve the others: see [WithHandlerConcurrency], [WithRate] and
//     [WithWeight].
//   - A worker that crashes, hangs or is cut off loses nothing: its tasks go to
//     others when their leases have run out. What comes again has a larger fencing
//     token and the same idempotency key.
//   - If Cancel says Removed the task does not run any more.
//   - Each command has its effect once, however often it is sent. Where it is not known
//     whether it had, the error is an [UnknownError], which can ask.
//   - The context ends every call.
//   - A task whose handler or schedule a worker does not have is left to others, and no
//     attempt of it is counted.
//   - After a downtime everything that was due runs, the oldest first, or as
//     [Missed] says.
//   - Dead letters stay until somebody takes them away, or [WithDeadLimit] does.
//
// # Concurrency
//
// Clients and Workers may be used by any number of goroutines. Handlers run
// concurrently, each on a goroutine of its own. Two attempts at one task do not
// overlap unless a lease was lost.
//
// # Complexity
//
// Scheduling, cancelling and finishing are O(log n) in a shard's tasks, or better.
//
// # When not to use it
//
// Where tasks may be lost with their process, package timer does the same in
// nanoseconds. For queues of jobs that are due at once and that need priorities, or rate
// limits over all workers, a job queue is the better tool.
package durable
