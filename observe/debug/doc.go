// Package debug serves a page that shows the timers of a running program: which timers
// are pending and when they fall due, how late timers fire, how many start, stop and fire
// a second, and how many callbacks panic.
//
// # Usage
//
// Name the Schedulers, and mount the handler beside net/http/pprof:
//
//	s := timer.New(timer.WithName("requests"))
//	...
//	http.Handle("/debug/timers", debug.Handler())
//
// The page lists all Schedulers of the process that have a name ([timer.WithName]), and
// the default Scheduler if it was used. The query ?format=json returns the same numbers
// as JSON, and &scheduler=NAME selects one Scheduler.
//
// [WithSources] adds other things to the page. For example, a Source of package
// durable/metrics shows the queue by state, each handler's work, and the latest dead
// letters with their errors.
//
// # Safety
//
// The handler only reads. It answers only GET and HEAD, and only requests whose Host is
// the loopback's, such as localhost or 127.0.0.1, unless [WithHosts] names others. So a
// web page that you visit cannot read it through a host name that resolves to your
// machine. The page loads nothing from other hosts and runs no script but its own, which
// the Content-Security-Policy enforces. It also works without scripts.
//
// Anyone who can open the page sees the names of functions, and with WithSources the keys
// and errors of dead letters. Mount it where you would mount net/http/pprof.
//
// # Complexity
//
// The page reads up to 100,000 pending timers of the Scheduler that it shows, in about 25
// ms (BenchmarkHandler), and says so if there are more. It holds a lock of the Scheduler
// only for 512 timers at a time.
package debug
