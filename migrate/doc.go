// Package migrate finds the timers of a program that can become Tickless's and rewrites
// them: calls of time.AfterFunc, NewTimer, NewTicker and Sleep, and contexts with a
// deadline. It works on types, not on text: a *time.Timer becomes a *timer.Timer
// together with every field, hook, interface, map and test that it flows through, or
// none of them changes.
//
// # Usage
//
// `tickless migrate` rewrites the packages of a module together, with package project.
// Analyzer does the same for one package at a time, under drivers of
// golang.org/x/tools/go/analysis such as go vet (package vettool) and golangci-lint.
// Both call Analyze.
//
// # What is rewritten
//
//	time.AfterFunc, NewTimer, NewTicker, Sleep    timer.AfterFunc, ...
//	*time.Timer, *time.Ticker                     *timer.Timer, *timer.Ticker
//	context.WithTimeout, WithDeadline, ...Cause   deadline.WithTimeout, ...
//
// time.After and time.Tick stay: the functions of package timer are the same. If the
// name timer or deadline is taken in a file, the import gets another name. The import
// of package time is removed when nothing uses it.
//
// # What is not rewritten
//
// The report gives the reasons for each call that is not rewritten, with their
// positions:
//
//   - The timer flows to another module or comes from one.
//   - The timer is part of the API of a package that is neither internal nor a
//     program. Fields that an exported type promotes and values that an exported
//     function returns are API too.
//   - The timer is held or copied by value, or becomes an unsafe.Pointer.
//   - The program takes len or cap of the timer's channel, or may do so because
//     the channel is stored in a variable.
//   - Nothing stops the NewTimer or NewTicker.
//   - The timer, or a value whose methods take or return timers, becomes an
//     interface value in a call of a function that is not known to be harmless.
//   - A struct embeds the timer beside another method Deadline, which package
//     timer's would hide.
//   - The file is generated, uses cgo, imports package time with a dot, or looks
//     for leaked goroutines.
//   - A file that the build excludes may use the timer by name.
//   - The timer becomes an interface value, and a type assertion may return it or
//     another timer of the same type that is not rewritten.
//   - runtime.SetFinalizer gets the timer.
//   - The timer reaches a type switch that has a case for package timer's type.
//   - A package variable or a sync.Pool leads to the timer, in a package that a
//     test may run inside a testing/synctest bubble. A timer that is used both
//     inside and outside a bubble belongs to neither.
//
// docs/migrating.md says what the rewritten program does differently.
//
// # Guarantees
//
// The rewritten packages compile if the original ones do and all packages that use them
// are analyzed together. A file that was formatted with gofmt still is.
//
// # Limits
//
// The analysis does not see through reflection and assembly. It does not type-check
// files for other systems and blocks what these may use by name. Code that prints a
// type or reflects on it sees the new one. Modules nested in this one may use exported
// identifiers of its internal packages: the analysis does not see them.
//
// # Complexity
//
// Almost linear in the size of the source.
package migrate
