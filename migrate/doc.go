// Package migrate finds the timers of a program that can be Tickless's, and rewrites
// them: what package time's AfterFunc, NewTimer, NewTicker and Sleep start, and
// contexts with a deadline. It goes by types, not by text. A *time.Timer in a field, a
// hook, an interface, a map or a test becomes a *timer.Timer with all that it gets to
// and comes from, or stays as it is.
//
// # Usage
//
// `tickless migrate` rewrites the packages of a module together: package project.
// Analyzer is the same for drivers of golang.org/x/tools/go/analysis, such as go vet
// (package vettool) and golangci-lint; it sees a package at a time. Analyze is what
// both are made of.
//
// # What is rewritten
//
//	time.AfterFunc, NewTimer, NewTicker, Sleep    timer.AfterFunc, ...
//	*time.Timer, *time.Ticker                     *timer.Timer, *timer.Ticker
//	context.WithTimeout, WithDeadline, ...Cause   deadline.WithTimeout, ...
//
// time.After and time.Tick stay: package timer's are the same functions. The import is
// added under another name where timer or deadline means something else in the file, and that of
// package time is taken out where nothing needs it any more.
//
// # What is left
//
// Each call that is left has its reasons, with the place that stands in the way:
//
//   - the timer gets to another module, or comes from one
//   - it is part of the API of a package, unless that is internal or a program; so is
//     what an exported type promotes, or an exported function hands out
//   - it is held or copied by value, or becomes an unsafe.Pointer
//   - len or cap is taken of its channel, or its channel gets to a variable or the like
//     and len or cap is taken of some channel of times
//   - it is a NewTimer or NewTicker that nothing stops
//   - it becomes an interface value of a function's that is not known to be harmless, or
//     a value whose methods take or return timers does
//   - it is embedded beside another method Deadline, which package timer's would hide
//   - it is in a file that is generated, uses cgo, or imports package time with a dot
//   - it is in a file that looks for goroutines that were left behind
//   - a file may use it, by its name, that the build leaves out
//   - it becomes an interface value, and a type assertion may get it or another of its
//     type that is left
//   - runtime.SetFinalizer gets it
//   - it gets to a type switch that has a case for package timer's type too
//   - a package's variable or a sync.Pool keeps it, or leads to it, in a package that a
//     test may run inside a testing/synctest bubble: used outside it too, such a timer
//     belongs to neither
//
// What the rewritten program then does differently is in docs/migrating.md.
//
// # Guarantees
//
// The rewritten packages compile if the analyzed ones do and all packages that use
// them were analyzed with them. A file that was as gofmt has it still is.
//
// # Limits
//
// Reflection, assembly, and files for other systems are not looked through; what files
// for other systems may use by name is left. What prints a type or reflects on it shows
// the new one. Exported identifiers of internal packages may be used by
// other modules in folders below: these are not seen.
//
// # Complexity
//
// Almost linear in the size of the source.
package migrate
