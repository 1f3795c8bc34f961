// Package server has timers of every sort.
package server

import (
	"context"
	"net"
	"time"
)

// Conn is part of the API.
type Conn struct {
	net.Conn
	idle *time.Timer
	// Retry can be set by other modules.
	Retry *time.Timer
	limit *time.Timer
}

// Touch puts off the end.
func (c *Conn) Touch(d time.Duration) {
	if c.idle == nil {
		c.idle = newIdle(d, func() { c.Close() })
		return
	}
	c.idle.Reset(d)
}

// Stop ends it.
func (c *Conn) Stop() bool { return c.idle.Stop() }

var newIdle = time.AfterFunc

// Again starts the API's timer.
func (c *Conn) Again(d time.Duration) { c.Retry = time.AfterFunc(d, func() {}) }

// Wait waits for c, but not for ever.
func Wait(ctx context.Context, c <-chan int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case v := <-c:
		return v, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(time.Hour):
		return 0, nil
	}
}

// Limit ends it after d, whatever comes.
func (c *Conn) Limit(d time.Duration) { c.limit = time.AfterFunc(d, func() { c.Close() }) }
