package imports

import (
	"time"

	wheel "github.com/tickless/tickless/timer"
)

func there() *wheel.Timer {
	time.AfterFunc(time.Second, gone) // want `can be`
	return wheel.AfterFunc(time.Second, gone)
}
