package constraints

import (
	"time"

	"foreign/clock"
)

func starts[T interface{ Start() *time.Timer }](x T) *time.Timer { return x.Start() }

func started() {
	t := starts(clock.Starter{})
	t = time.AfterFunc(1, nil) // want `stays: Start of package foreign/clock`
	t.Stop()
}
