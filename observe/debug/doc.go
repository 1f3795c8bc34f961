// Package debug serves a page that shows the timers of a running program:
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
//	http.Handle("/debug/timers", debug.Handler())
//
// The page lists all Schedulers of the process that have a name ([timer.WithName]), and
// the default Scheduler if it was used. With the query ?format=json the page is JSON with
// the same numbers. The query ?scheduler=NAME selects one Scheduler.
//
// [WithSources] adds other things to the page. For example, a Source of package
// durable/metrics shows a task queue by state, each handler's work, and the latest dead
// letters with their errors.
//
// # Safety
//
// The handler changes nothing. It answers only GET and HEAD, and only if the request's
// Host is the local machine, such as localhost or 127.0.0.1. Otherwise a web page that you
// visit could read it, through a host name that resolves to your machine. [WithHosts]
// allows more hosts.
//
// The page loads nothing from other hosts, and runs only its own script. A
// Content-Security-Policy enforces this. The page also works without scripts.
//
// Anyone who can open the page sees the names of functions, and with WithSources the keys
// and errors of dead letters. Mount it where you would mount net/http/pprof.
//
// # Complexity
//
// The page reads at most 100,000 pending timers of a Scheduler, in about 25 ms. If there
// are more, the page says so. It holds a lock of the Scheduler only for 512 timers at a
// time.
package debug
