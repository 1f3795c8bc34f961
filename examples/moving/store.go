package main

import (
	"context"
	"errors"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

// The stores differ only in these constructors.

func newMemoryDeadlines(f expiryFunc) (deadlines, error) {
	st := memstore.New()
	return newTaskDeadlines(st, st.Close, f)
}

func newFileDeadlines(path string, f expiryFunc) (deadlines, error) {
	st, err := sqlitestore.Open(path)
	if err != nil {
		return nil, err
	}
	return newTaskDeadlines(st, st.Close, f)
}

func newRedisDeadlines(addr string, f expiryFunc) (deadlines, error) {
	redisClient := redis.NewClient(&redis.Options{Addr: addr})
	st := redisstore.New(redisClient, redisstore.WithName("shop"))
	return newTaskDeadlines(st, func() error { return errors.Join(st.Close(), redisClient.Close()) }, f)
}

// newInProcessRedisDeadlines starts a Redis server in this process and uses it as the
// store.
func newInProcessRedisDeadlines(f expiryFunc) (deadlines, error) {
	m, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	d, err := newRedisDeadlines(m.Addr(), f)
	if err != nil {
		m.Close()
		return nil, err
	}
	s := d.(*taskDeadlines)
	closeClient := s.close
	s.close = func() error {
		defer m.Close()
		return closeClient()
	}
	return s, nil
}

// taskDeadlines implements the interface deadlines with tasks of package durable. A task
// names its callback, "expire", because any process may run it.
type taskDeadlines struct {
	client *durable.Client
	worker *durable.Worker
	ended  chan error
	close  func() error
}

func newTaskDeadlines(st store.Store, closeStore func() error, f expiryFunc) (deadlines, error) {
	s := &taskDeadlines{client: durable.New(st), ended: make(chan error, 1), close: closeStore}
	if _, err := s.client.Check(context.Background()); err != nil {
		return nil, errors.Join(err, closeStore())
	}
	s.worker = durable.NewWorker(s.client)
	s.worker.Handle("expire", func(_ context.Context, d durable.Delivery) error {
		f(d.Key, d.Body)
		return nil
	})
	go func() { s.ended <- s.worker.Run(context.Background()) }()
	return s, nil
}

func (s *taskDeadlines) Set(order string, amount []byte, d time.Duration) error {
	t := durable.Task{Key: order, Handler: "expire", Body: amount}
	_, err := s.client.Schedule(context.Background(), t, durable.After(d))
	return err
}

func (s *taskDeadlines) Move(order string, d time.Duration) error {
	_, err := s.client.Reschedule(context.Background(), order, durable.After(d))
	return err
}

func (s *taskDeadlines) Remove(order string) error {
	_, err := s.client.Cancel(context.Background(), order)
	return err
}

func (s *taskDeadlines) Close() error {
	if err := s.worker.Shutdown(context.Background()); err != nil {
		return errors.Join(err, s.close())
	}
	runErr := <-s.ended
	if errors.Is(runErr, durable.ErrClosed) { // Run had not started
		runErr = nil
	}
	return errors.Join(runErr, s.close())
}
