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
// It needs Redis 6.2 or later, or Valkey: one server, several under Sentinel, or
// a Redis Cluster, of which one queue uses all masters.
package redistimer
