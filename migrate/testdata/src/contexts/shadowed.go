package contexts

import (
	"context"
	"time"
)

func shadowed(ctx context.Context, d time.Duration) {
	deadline := time.Now().Add(d)
	_, cancel := context.WithDeadline(ctx, deadline) // want `can be`
	cancel()
	timer := time.AfterFunc(d, func() {}) // want `can be`
	timer.Stop()
}
