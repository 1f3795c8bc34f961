// Package debugpage serves a page that shows the timers of a running program:
//
//   - which timers are pending, and when they are due
//   - how late timers fire
//   - how many timers start, stop and fire per second
//   - how many callbacks have panicked
//
// # Usage
//
// Give the Schedulers names, and mount the handler beside net/http/pprof:
//
//	s := timer.New(timer.WithName("requests"))
//	...
//	http.Handle("/debug/timers", debugpage.Handler())
//
// The page lists all Schedulers of the process that have a name ([timer.WithName]), and
// the default Scheduler if it was used. With the query ?format=json the page is JSON with
// the same numbers. The query ?scheduler=NAME selects one Scheduler.
//
// [WithSources] adds other things to the page, such as a task queue: see package
// durable/metrics.
//
// # Safety
//
// The handler changes nothing. It answers only GET and HEAD, and only under host names of
// the local machine, such as localhost: this prevents DNS rebinding. [WithHosts] allows
// more hosts.
//
// The page loads nothing from other hosts, and runs only its own script. It also works
// without scripts.
//
// Anyone who can open the page sees the names of functions, and with WithSources the keys
// and errors of dead letters. Mount it where you would mount net/http/pprof.
//
// # Complexity
//
// The page reads at most 100,000 pending timers of a Scheduler, in about 25 ms. It holds
// a lock of the Scheduler only for 512 timers at a time.
package debugpage
