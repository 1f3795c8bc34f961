package layout

import (
	"net"
	"testing"
	"time"

	"github.com/tickless/tickless/delayqueue"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/observe/debugpage"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// TestOptions_NilIsRefused passes a nil option to each function that takes options. The
// panic must name the function and the position of the option.
func TestOptions_NilIsRefused(t *testing.T) {
	s := timer.New()
	defer s.Close()
	for want, f := range map[string]func(){
		"delayqueue: New: option 1 is nil":         func() { delayqueue.New[int](nil) },
		"executor: NewGoroutines: option 1 is nil": func() { executor.NewGoroutines(nil) },
		"executor: NewInline: option 1 is nil":     func() { executor.NewInline(nil) },
		"executor: NewPool: option 2 is nil":       func() { executor.NewPool(executor.WithWorkers(1), nil) },
		"idle: New: option 2 is nil":               func() { idle.New(func(int, time.Time) {}, idle.WithTick(time.Second), nil) },
		"idle: NewConns: option 1 is nil":          func() { idle.NewConns(time.Second, nil) },
		"idle: NewListener: option 1 is nil":       func() { idle.NewListener(new(net.TCPListener), time.Second, nil) },
		"debugpage: Handler: option 1 is nil":      func() { debugpage.Handler(nil) },
		"purgatory: New: option 1 is nil":          func() { purgatory.New[int](s, nil) },
		"jobs: Periodic: option 1 is nil":          func() { jobs.Periodic(s, time.Second, func() {}, nil) },
		"timer: New: option 2 is nil":              func() { timer.New(timer.WithName("a"), nil) },
	} {
		func() {
			defer func() {
				if v := recover(); v != want {
					t.Errorf("got the panic %v, want %q", v, want)
				}
			}()
			f()
		}()
	}
}
