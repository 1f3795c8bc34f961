// Package durable schedules tasks in a store. It does for tasks that must outlive a
// process, or be shared by several processes, what package timer does within one
// process.
//
// # Usage
//
//	client := durable.New(memstore.New()) // or another store
//
//	// Here, or in another process with the same store:
//	w := durable.NewWorker(client)
//	w.Handle("remind", func(ctx context.Context, d durable.Delivery) error {
//		return send(ctx, d.Key, d.Body)
//	})
//	ended := make(chan error, 1)
//	go func() { ended <- w.Run(ctx) }() // after ctx ends, wait for Run: it hands unfinished tasks back to the store
//
//	// Anywhere:
//	_, err := client.Schedule(ctx, durable.Task{Key: "order-17", Handler: "remind", Body: body},
//		durable.After(30*time.Minute))
//	if err != nil {
//		return err // not scheduled, or unknown: see UnknownError
//	}
//	client.Reschedule(ctx, "order-17", durable.After(time.Hour))
//	client.Schedule(ctx, durable.Task{Key: "report", Handler: "report", Cron: "0 9 * * 1-5", Zone: "Europe/Berlin"},
//		durable.Next(), durable.OnlyChanged())
//	client.Cancel(ctx, "order-17")
//
// [HandleJSON] decodes the body for the handler. A Task without a Key gets one from
// [NewKey]. [WithDeadHook] calls a function for each new dead letter. [Client.List]
// iterates over tasks and dead letters by state, handler, prefix, time or error;
// [Client.Page] returns them page by page. Package callback provides the handler for
// tasks that are HTTP requests.
//
// # Guarantees
//
//   - A scheduled task runs at least once, if the store keeps its data and a worker has its
//     handler. Exceptions: it is cancelled or replaced, or [Missed] skips a late run.
//   - A task never runs early, by the store's clock.
//   - A slow handler does not starve the others: see [WithConcurrency], [WithHandlerConcurrency]
//     and [WithRate], and [Client.SetLimit] for all workers of a store together, also for
//     each [Task.Group]. [Client.PauseHandler] stops a handler in all of them.
//   - If a worker crashes, hangs or is disconnected, other workers get its tasks when the
//     leases have expired.
//   - If Cancel returns Removed, the task does not run any more.
//   - Each command has its effect once, however often it is sent. If its effect is unknown, the
//     error is an [UnknownError], whose method Again finds out.
//   - Every call returns when its context ends.
//   - A worker leaves tasks whose handler or schedule it lacks to other workers.
//   - After a downtime, tasks that became due run, the oldest first. A repeating task runs
//     once for all runs that it missed, unless [Missed] says otherwise.
//   - After 5 expired leases or 25 attempts, by default, a run becomes a dead letter. It
//     stays until it is requeued or purged, or [WithDeadLimit] purges it.
//
// # How it works
//
// A store keeps the tasks: sqlitestore in a file, redisstore on Redis, pgstore in
// PostgreSQL, memstore in memory. Package store defines what every store guarantees, and
// shows the life of a task. The hash of a task's key selects one of the store's shards. For
// each shard a [Worker] runs a loop, which reports finished attempts, extends leases and
// claims due tasks in one command. The loop does not poll: the store says when the next task
// is due, and wakes the loop if an earlier one is scheduled. The README draws the way of a
// task from Schedule to the handler.
//
// # Concurrency
//
// Any number of goroutines may use Clients and Workers. Handlers run concurrently, each
// on a goroutine of its own. Two attempts at one task do not overlap unless a lease was
// lost.
//
// # Complexity
//
// Scheduling, cancelling and finishing are O(log n) in a shard's tasks, or better.
//
// # When not to use it
//
// If tasks need not survive their process, package timer does the same in nanoseconds.
// For jobs that run immediately and need priorities, use a job queue.
package durable
