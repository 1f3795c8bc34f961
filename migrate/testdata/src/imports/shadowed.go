package imports

import (
	"time"

	"github.com/tickless/tickless/timer"
)

var started = timer.AfterFunc(time.Second, gone)

func shadowed(timer int) {
	time.AfterFunc(time.Second, gone) // want `can be`
}
