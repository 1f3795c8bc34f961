package debugpage_test

import (
	"net/http"

	"github.com/tickless/tickless/observe/debugpage"
	"github.com/tickless/tickless/timer"
)

func Example() {
	s := timer.New(timer.WithName("requests"))
	defer s.Close()

	http.Handle("/debug/timers", debugpage.Handler())
	// go http.ListenAndServe("localhost:6060", nil)
}
