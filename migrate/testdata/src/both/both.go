// Package both uses package timer already.
package both

import (
	"time"

	"github.com/tickless/tickless/timer"
)

func stop(x any) {
	switch x := x.(type) {
	case *time.Timer:
		x.Stop()
	case *timer.Timer:
		x.Stop()
	}
}

func all() {
	t := time.NewTimer(1) // want `stays: it becomes a value of an interface type`
	t.Stop()
	stop(t)
	stop(timer.AfterFunc(1, nil))

	time.AfterFunc(1, nil) // want `can be`
}
