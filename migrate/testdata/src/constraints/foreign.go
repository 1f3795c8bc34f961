package constraints

import (
	"time"

	"foreign/clock"
)

func starts[T interface{ Start() *time.Timer }](x T) *time.Timer { return x.Start() }

func started() {
	t := starts(clock.Starter{})
	t = time.AfterFunc(1, nil) // want `stays: it would not compile: in call to starts, T`
	t.Stop()
}
