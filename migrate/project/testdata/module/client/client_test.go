package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := Call(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err != context.DeadlineExceeded || time.Since(begin) != time.Second {
			t.Error(err, time.Since(begin))
		}
		n := 0
		Every(time.Hour, 3, func() { n++ })
		if n != 3 || time.Since(begin) != 3*time.Hour+time.Second {
			t.Error(n, time.Since(begin))
		}
	})
}
