package clock_test

import (
	"fmt"
	"time"

	clock "github.com/tickless/tickless/clocks/benbjohnson"
)

func Example() {
	m := clock.NewMock()
	timeout := m.Timer(time.Hour)
	m.Add(time.Hour)
	fmt.Println((<-timeout.C).UTC())
	// Output: 1970-01-01 01:00:00 +0000 UTC
}
