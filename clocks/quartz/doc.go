// Package quartz is github.com/coder/quartz on Tickless: the same names, with a
// Scheduler's timers.
//
// That package's Clock returns pointers to its own structs, whose methods call
// package time or its Mock and nothing else. So no other implementation of its
// interface can start timers, and this package takes its place instead.
//
// # Usage
//
// Change the import:
//
//	import "github.com/tickless/tickless/clocks/quartz"
//
// NewReal is then a clock on the default Scheduler, and On one on any other. NewMock is
// quartz's own Mock, with its traps, for tests; NewVirtual is a clock on package
// timertest's, for tests that want to run on a Scheduler as production does.
//
// # Differences
//
// NewMock's clock is quartz's in everything. The others follow Go 1.23 as package time
// does. Tags mean nothing to them. Inside a testing/synctest bubble use On with a
// Scheduler that was made there. Timer and Ticker are made by a Clock, and their zero
// values cannot be used.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package quartz
