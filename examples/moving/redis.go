package main

import (
	"context"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/redistimer"
)

// onRedis has the deadlines on Redis. Any process may set them, and any that runs
// a worker may be the one in which an order expires: so the callback has a name.
type onRedis struct {
	server *miniredis.Miniredis // nil: somebody else's
	redis  *redis.Client
	orders *redistimer.Client
	stop   context.CancelFunc
	ended  chan error
}

func newOnRedis(addr string, f expiry) (deadlines, error) {
	r := &onRedis{ended: make(chan error, 1)}
	if addr == "in-process" {
		r.server = miniredis.NewMiniRedis()
		if err := r.server.Start(); err != nil {
			return nil, err
		}
		addr = r.server.Addr()
	}
	r.redis = redis.NewClient(&redis.Options{Addr: addr})
	r.orders = redistimer.New(r.redis, redistimer.WithName("shop"))
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	if _, err := r.orders.Check(ctx); err != nil {
		r.ended <- nil
		_ = r.Close()
		return nil, err
	}
	w := redistimer.NewWorker(r.orders)
	w.Handle("expire", func(_ context.Context, d redistimer.Delivery) error {
		f(d.Key, d.Body)
		return nil
	})
	go func() { r.ended <- w.Run(ctx) }()
	return r, nil
}

func (r *onRedis) Set(order string, amount []byte, d time.Duration) error {
	t := redistimer.Task{Key: order, Handler: "expire", Body: amount}
	_, err := r.orders.Schedule(context.Background(), t, redistimer.After(d))
	return err
}

func (r *onRedis) Move(order string, d time.Duration) error {
	_, err := r.orders.Reschedule(context.Background(), order, redistimer.After(d))
	return err
}

func (r *onRedis) Remove(order string) error {
	_, err := r.orders.Cancel(context.Background(), order)
	return err
}

func (r *onRedis) Close() error {
	r.stop()
	err := <-r.ended
	_ = r.redis.Close()
	if r.server != nil {
		r.server.Close()
	}
	return err
}
