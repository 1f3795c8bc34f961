package imports

import (
	"time"
	clock "time"
)

func twice() {
	time.AfterFunc(1, nil)             // want `can be`
	clock.AfterFunc(clock.Second, nil) // want `can be`
}
