// Package deadline stands for the real one.
package deadline

import (
	"context"
	"time"
)

func WithTimeout(context.Context, time.Duration) (context.Context, context.CancelFunc) {
	return nil, nil
}
