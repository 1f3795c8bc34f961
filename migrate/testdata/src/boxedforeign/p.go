package boxedforeign

import (
	"fmt"
	"time"

	"example.com/log"
)

func all() {
	t := time.NewTimer(1) // want `time.NewTimer stays: it is passed to log.Any as an interface value`
	log.Any(t)
	t.Stop()

	u := time.NewTimer(1) // want `can be`
	fmt.Println(u)
	u.Stop()
}
