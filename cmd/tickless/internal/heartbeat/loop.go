package heartbeat

import (
	"context"
	"sync"
)

// memoryTransport is a channel between the clients and an event loop, which
// takes heartbeats in batches as an event loop does from its poll.
type memoryTransport struct {
	side loop

	run     *run
	batches chan []beat
	handled chan struct{}
	looping sync.WaitGroup
}

// A loop keeps the timeouts of an event loop's connections.
type loop interface {
	Name() string
	// Open watches all connections.
	Open(r *run) error
	// Beat takes heartbeats, all of this moment.
	Beat(beats []beat)
	Close()
}

func (m *memoryTransport) open(_ context.Context, r *run) error {
	m.run = r
	m.batches, m.handled = make(chan []beat), make(chan struct{})
	return nil
}

func (m *memoryTransport) begin() error {
	if err := m.side.Open(m.run); err != nil {
		return err
	}
	m.looping.Go(func() {
		for beats := range m.batches {
			m.side.Beat(beats)
			m.handled <- struct{}{}
		}
	})
	return nil
}

func (m *memoryTransport) send(beats []beat) error {
	m.batches <- beats
	<-m.handled
	return nil
}

// held counts all: the loops keep the timers of the evicted.
func (m *memoryTransport) held(int) int { return m.run.plan.conns }

func (m *memoryTransport) end() {
	if m.batches != nil {
		close(m.batches)
	}
	m.looping.Wait()
	if m.run != nil {
		m.side.Close()
	}
}
