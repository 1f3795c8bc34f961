package imports

import (
	"time"

	wheel "github.com/tickless/tickless/timer"
)

func shadowedAlias(x any) *wheel.Timer {
	switch wheel := x.(type) {
	case int:
		time.AfterFunc(time.Duration(wheel), gone) // want `can be`
	}
	return wheel.AfterFunc(time.Second, gone)
}
