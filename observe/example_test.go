package observe_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/vars"
	"github.com/tickless/tickless/timer"
)

// Publish the numbers of one Scheduler with package vars.
func ExampleScheduler() {
	s := timer.New()
	defer s.Close()
	s.AfterFunc(time.Hour, func() {})
	numbers := vars.New(observe.Scheduler("leases", s)).String()
	fmt.Println(strings.Contains(numbers, `"timer.pending":1`))
	// Output: true
}
