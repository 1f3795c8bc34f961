package debug_test

import (
	"net/http"

	"github.com/tickless/tickless/observe/debug"
	"github.com/tickless/tickless/timer"
)

func Example() {
	s := timer.New(timer.WithName("requests"))
	defer s.Close()

	http.Handle("/debug/timers", debug.Handler())
	// go http.ListenAndServe("localhost:6060", nil)
}
