package shadow

import (
	"fmt"
	"time"
)

func both(d time.Duration) {
	timer, tickless := time.NewTimer(d), 1 // want `can be`
	timer.Stop()
	fmt.Println(tickless)
}
