package vars_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/vars"
	"github.com/tickless/tickless/timer"
)

// A program that serves /debug/vars would call vars.Publish("tickless"). Here the variable is
// read at once.
func Example() {
	s := timer.New()
	defer s.Close()
	s.AfterFunc(time.Hour, func() {})

	var numbers struct {
		Scheduler map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(vars.New(observe.Scheduler("requests", s)).String()), &numbers); err != nil {
		panic(err)
	}
	fmt.Println("pending:", numbers.Scheduler["requests"]["timer.pending"])
	// Output: pending: 1
}
