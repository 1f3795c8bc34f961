package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
)

const (
	// idlePace is how long the clients sleep when they have caught up with the
	// plan.
	idlePace = time.Millisecond
	// idlePatience is how long a run waits, once all are due, for evictions to
	// come before it calls the rest missed.
	idlePatience = 3 * time.Second
	// idleDialers is how many connections are made at a time.
	idleDialers = 32
)

// An idleRun is a plan being carried out by one side.
type idleRun struct {
	plan *idlePlan
	base time.Time

	evictions []atomic.Int32 // of each connection
	settled   atomic.Int64   // connections that fell silent and were evicted

	mu struct {
		sync.Mutex
		late                     []time.Duration
		early, twice, unpunctual int64
	}
}

func (r *idleRun) now() time.Duration { return time.Since(r.base) }

// evicted notes that a connection, silent since a moment, is evicted now.
func (r *idleRun) evicted(conn int, since time.Duration) {
	late := r.now() - since - r.plan.config.Timeout
	again := r.evictions[conn].Inc() > 1
	r.mu.Lock()
	defer r.mu.Unlock()
	if again {
		r.mu.twice++
		return
	}
	if late < 0 {
		r.mu.early++
	}
	if !r.plan.silent[conn] {
		r.mu.unpunctual++
		return
	}
	r.mu.late = append(r.mu.late, late)
	r.settled.Inc()
}

// idleTransport brings the heartbeats to the side and back. Its memory and its
// making are not measured.
type idleTransport interface {
	// open prepares all connections.
	open(ctx context.Context, r *idleRun) error
	// begin has the side watch them.
	begin() error
	// send brings heartbeats, in order, that are due by now.
	send(beats []beat) error
	// end closes all connections, once with and once without begin before.
	end()
}

// run carries out the plan. When ctx ends, no more heartbeats are sent; the tally
// is of what was done until then. A progress that is not nil is called with the
// number of heartbeats sent.
func (p *idlePlan) run(ctx context.Context, tr idleTransport, progress func(int64)) (*idleTally, error) {
	r := &idleRun{plan: p, evictions: make([]atomic.Int32, p.conns)}
	defer tr.end()
	if err := tr.open(ctx, r); err != nil {
		if ctx.Err() == nil {
			return nil, err
		}
		return &idleTally{Interrupted: true}, nil
	}
	before := memoryInUse()
	r.base = time.Now()
	if err := tr.begin(); err != nil {
		return nil, err
	}
	start := r.now() // of the first heartbeat
	cpuBefore, hasCPU := processCPU()
	var behind time.Duration
	sent := 0
	for ctx.Err() == nil && sent < len(p.beats) {
		now := r.now() - start
		from := sent
		for sent < len(p.beats) && p.beats[sent].at <= now {
			sent++
		}
		if sent > from {
			behind = max(behind, now-p.beats[from].at-2*idlePace)
			if err := tr.send(p.beats[from:sent]); err != nil {
				return nil, err
			}
			if progress != nil {
				progress(int64(sent))
			}
		}
		sleepOrDone(ctx, idlePace)
	}
	silent := int64(p.silentOnes())
	for end := r.now() + idlePatience; ctx.Err() == nil && r.settled.Load() < silent && r.now() < end; {
		sleepOrDone(ctx, idlePace)
	}
	elapsed := r.now()
	cpuAfter, _ := processCPU()

	t := r.tally(sent, elapsed-start, ctx.Err() != nil)
	t.Elapsed, t.Behind = elapsed, behind
	if hasCPU {
		cpu := cpuAfter - cpuBefore
		t.CPU = &cpu
	}
	t.Memory = max(0, memoryInUse()-before)
	runtime.KeepAlive(tr)
	return t, nil
}

// tally adds up what was seen until a moment of the plan, of which some
// heartbeats have been sent. If it was cut short, a connection counts as silent
// only if its eviction was due for a while.
func (r *idleRun) tally(sent int, elapsed time.Duration, interrupted bool) *idleTally {
	p := r.plan
	last := make([]time.Duration, p.conns)
	for _, b := range p.beats {
		last[b.conn] = b.at
	}
	t := &idleTally{Conns: p.conns, Heartbeats: int64(sent), Interrupted: interrupted}
	for i, silent := range p.silent {
		evicted := r.evictions[i].Load() > 0
		if !silent || interrupted && !evicted && last[i]+p.config.Timeout+idleGrace > elapsed {
			continue
		}
		t.Silent++
		if !evicted {
			t.Missed++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Evicted, t.Late = int64(len(r.mu.late)), slices.Clone(r.mu.late)
	t.Early, t.Twice, t.Unpunctual = r.mu.early, r.mu.twice, r.mu.unpunctual
	return t
}

func sleepOrDone(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// memoryInUse returns the bytes of the heap's live objects and of stacks.
func memoryInUse() int64 {
	runtime.GC()
	runtime.GC() // the second frees what pools have held
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
}

// tcpTransport has both ends of all connections, over the loopback interface.
type tcpTransport struct {
	address string // without a port
	side    idleServer

	run     *idleRun
	servers []*net.TCPConn
	clients []*net.TCPConn
	serving sync.WaitGroup
}

// An idleServer serves connections, and evicts the silent ones.
type idleServer interface {
	Name() string
	// Open is called once, before the first Serve.
	Open(r *idleRun)
	// Serve reads heartbeats until the connection ends.
	Serve(conn int, c *net.TCPConn)
	// Close is called when no Serve is under way.
	Close() error
}

func (t *tcpTransport) open(ctx context.Context, r *idleRun) error {
	t.run = r
	n := r.plan.conns
	t.servers, t.clients = make([]*net.TCPConn, n), make([]*net.TCPConn, n)
	l, err := net.Listen("tcp", net.JoinHostPort(t.address, "0"))
	if err != nil {
		return err
	}
	var accepting sync.WaitGroup
	accepted := make(chan error, 1)
	accepting.Go(func() { accepted <- t.accept(l) })
	var dialing sync.WaitGroup
	var next atomic.Int64
	failed := make(chan error, idleDialers)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(t.address)}, KeepAlive: -1}
	for range idleDialers {
		dialing.Go(func() {
			for i := next.Inc() - 1; i < int64(n); i = next.Inc() - 1 {
				c, err := d.DialContext(ctx, "tcp", l.Addr().String())
				if err != nil {
					failed <- err
					return
				}
				t.clients[i] = c.(*net.TCPConn)
				if _, err := c.Write(binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	dialing.Wait()
	select {
	case err = <-failed:
		l.Close()
		<-accepted
	default:
		err = <-accepted
		l.Close()
	}
	accepting.Wait()
	return err
}

// accept takes as many connections as there are, each of which tells its number.
func (t *tcpTransport) accept(l net.Listener) error {
	for range t.servers {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		var hello [4]byte
		if _, err := io.ReadFull(c, hello[:]); err != nil {
			c.Close()
			return err
		}
		i := binary.BigEndian.Uint32(hello[:])
		if i >= uint32(len(t.servers)) || t.servers[i] != nil {
			c.Close()
			return fmt.Errorf("a connection that is none of ours: %v", c.RemoteAddr())
		}
		t.servers[i] = c.(*net.TCPConn)
	}
	return nil
}

func (t *tcpTransport) begin() error {
	t.side.Open(t.run)
	for i, c := range t.servers {
		t.serving.Go(func() {
			t.side.Serve(i, c)
			c.Close()
		})
	}
	return nil
}

func (t *tcpTransport) send(beats []beat) error {
	payload := []byte("alive\n")
	for _, b := range beats {
		// A connection may have been evicted wrongly, for heartbeats that came
		// too late: that is counted elsewhere.
		_, _ = t.clients[b.conn].Write(payload)
	}
	return nil
}

func (t *tcpTransport) end() {
	for _, c := range t.clients {
		if c != nil {
			_ = c.SetLinger(0) // so that no port stays in use
			c.Close()
		}
	}
	t.serving.Wait()
	for _, c := range t.servers {
		if c != nil {
			c.Close()
		}
	}
	if t.run != nil {
		_ = t.side.Close()
	}
}

// memoryTransport is a channel between the clients and an event loop, which
// takes heartbeats in batches as an event loop does from its poll.
type memoryTransport struct {
	side idleLoop

	run     *idleRun
	batches chan []beat
	handled chan struct{}
	looping sync.WaitGroup
}

// An idleLoop keeps the timeouts of an event loop's connections.
type idleLoop interface {
	Name() string
	// Open watches all connections.
	Open(r *idleRun) error
	// Beat takes heartbeats, all of this moment.
	Beat(beats []beat)
	Close()
}

func (m *memoryTransport) open(_ context.Context, r *idleRun) error {
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

func (m *memoryTransport) end() {
	if m.batches != nil {
		close(m.batches)
	}
	m.looping.Wait()
	if m.run != nil {
		m.side.Close()
	}
}
