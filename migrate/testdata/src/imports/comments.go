package imports

import (
	// The standard library.
	"context"
	"fmt"
	// Timers are started here.
	"time" // and nowhere else

	// Other modules.
	"foreign/clock"
	// This comment belongs to nothing.
)

func comments(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 1) // want `can be`
	defer cancel()
	fmt.Println(ctx, clock.Zero)
	time.AfterFunc(1, nil) // want `can be`
}
