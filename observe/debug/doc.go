// Package debug serves a page that shows the timers of a program while it runs: what is
// pending and when it falls due, how late timers fire, how many start, stop and fire a
// second, and how many callbacks panic.
//
// # Usage
//
// Name the Schedulers, and mount the handler beside net/http/pprof:
//
//	s := timer.New(timer.WithName("requests"))
//	...
//	http.Handle("/debug/timers", debug.Handler())
//
// The page lists all Schedulers of the process that have a name ([timer.WithName]) and
// the default one, if it was used. The same numbers come as JSON with the query
// ?format=json, and of one Scheduler with &scheduler=NAME.
//
// [WithSources] puts other things on the page. Those of package durable/metrics, for
// example, show the queue by state, what each handler does, and the latest dead letters
// with their errors.
//
// # Safety
//
// The handler only reads. It answers GET and HEAD alone, and only requests whose Host
// is the loopback's, such as localhost or 127.0.0.1, unless [WithHosts] names others:
// so a web page that you visit cannot read it under a name of its own that leads to
// your machine. The page loads nothing from other hosts and runs no script but its own,
// which the Content-Security-Policy enforces; it works without one.
//
// Anyone who may open the page sees the names of functions, and with WithSources the keys
// and errors of dead letters. Mount it where you would mount net/http/pprof.
//
// # Complexity
//
// A page reads up to 100,000 pending timers of the Scheduler that it shows, in about 25 ms
// (BenchmarkHandler), and says so if there are more. It holds no lock of a Scheduler for
// longer than it takes to look at 512 timers.
package debug
