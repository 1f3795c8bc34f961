package main

import (
	"context"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// onStore has the deadlines in a store of package durable. Whoever has the store may set
// them, and may be the one in which an order expires: so the callback has a name.
type onStore struct {
	orders *durable.Client
	worker *durable.Worker
	ended  chan error
}

// newInMemory has them in this process' memory. Another store is another line here.
func newInMemory(f expiry) (deadlines, error) { return newOnStore(memstore.New(), f) }

func newOnStore(st store.Store, f expiry) (deadlines, error) {
	s := &onStore{orders: durable.New(st), ended: make(chan error, 1)}
	s.worker = durable.NewWorker(s.orders)
	s.worker.Handle("expire", func(_ context.Context, d durable.Delivery) error {
		f(d.Key, d.Body)
		return nil
	})
	go func() { s.ended <- s.worker.Run(context.Background()) }()
	return s, nil
}

func (s *onStore) Set(order string, amount []byte, d time.Duration) error {
	t := durable.Task{Key: order, Handler: "expire", Body: amount}
	_, err := s.orders.Schedule(context.Background(), t, durable.After(d))
	return err
}

func (s *onStore) Move(order string, d time.Duration) error {
	_, err := s.orders.Reschedule(context.Background(), order, durable.After(d))
	return err
}

func (s *onStore) Remove(order string) error {
	_, err := s.orders.Cancel(context.Background(), order)
	return err
}

func (s *onStore) Close() error {
	if err := s.worker.Shutdown(context.Background()); err != nil {
		return err
	}
	return <-s.ended
}
