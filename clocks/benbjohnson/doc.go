// Package clock is github.com/benbjohnson/clock on Tickless: the same names, with a
// Scheduler's timers.
//
// That package's Clock returns pointers to its own structs, whose methods call
// package time or its Mock and nothing else. So no other implementation of its
// interface can start timers, and this package takes its place instead.
//
// # Usage
//
// In code of one's own, change the import:
//
//	import clock "github.com/tickless/tickless/clocks/benbjohnson"
//
// To have it in what one depends on too, replace the module in go.mod. No version is
// tagged yet, so that is by a clone of the repository:
//
//	replace github.com/benbjohnson/clock => ../tickless/clocks/benbjohnson
//	replace github.com/tickless/tickless => ../tickless
//
// Then run go mod tidy -e: without -e it looks for a version of this module's own tests.
//
// New is then a clock on the default Scheduler, and On one on any other. NewMock is
// package timertest's clock behind the methods of Mock, so that tests run on a
// Scheduler as production does.
//
// # Differences
//
// Timers and tickers follow Go 1.23, also those of a Mock: after Stop or Reset no
// earlier value is received, and a Stop that withdraws a value reports true. What has
// a moment at which time stands, such as a timer that a callback starts, counts from
// that moment. Inside a testing/synctest bubble use On with a Scheduler that was made
// there. Timer and Ticker are made by a Clock, and their zero values cannot be used.
//
// # Concurrency
//
// All methods may be called from any goroutine, but for those that move a Mock's time,
// of which only one may run at a time.
package clock
