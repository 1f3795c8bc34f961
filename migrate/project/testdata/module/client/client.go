// Package client is tested in a bubble.
package client

import (
	"context"
	"time"
)

// Call gives up after a second.
func Call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return f(ctx)
}

// Every calls f a few times.
func Every(d time.Duration, n int, f func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for range n {
		<-t.C
		f()
	}
}
