package lost

import (
	"context"
	"time"

	"github.com/tickless/tickless/deadline"
)

func dropped(ctx context.Context) context.Context {
	ctx, _ = deadline.WithTimeout(ctx, time.Second) // want `the cancel function returned by context.WithTimeout should be called`
	return ctx
}

func onOnePath(ctx context.Context, early bool) {
	_, cancel := deadline.WithTimeout(ctx, time.Second) // want `the cancel function is not used on all paths`
	if early {
		return // want `this return statement may be reached without using the cancel var`
	}
	cancel()
}

func called(ctx context.Context) {
	_, cancel := deadline.WithTimeout(ctx, time.Second)
	defer cancel()
}

func standard(ctx context.Context) {
	_, _ = context.WithTimeout(ctx, time.Second) // want `the cancel function returned by context.WithTimeout should be called`
}
