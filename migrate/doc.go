// Package migrate rewrites programs that use package time's timers or contexts with
// deadlines, so that they use packages timer and deadline. It works on types, not on text:
// a *time.Timer becomes a *timer.Timer only together with every variable, field and
// function that it flows through.
//
// # Usage
//
//	tickless migrate --diff ./...    # or --fix; the program is cmd/tickless
//
// It rewrites all packages of a module together, with package project. Analyzer rewrites
// one at a time, under go vet (package vettool) or golangci-lint. Both call Analyze.
//
// # What is rewritten
//
//	time.AfterFunc, NewTimer, NewTicker, Sleep    timer.AfterFunc, ...
//	*time.Timer, *time.Ticker                     *timer.Timer, *timer.Ticker
//	context.WithTimeout, WithDeadline, ...Cause   deadline.WithTimeout, ...
//
// time.After and time.Tick stay: timer.After and timer.Tick are the same functions. If a
// file already uses the name timer or deadline, the new import gets another name.
// docs/migrating.md says what the rewritten program does differently.
//
// # What is not rewritten
//
// The report gives the reasons for each call that is not rewritten. Reasons in other modules:
//
//   - The timer comes from another module or flows to one.
//   - The timer is part of the API of a package that is neither internal nor a program.
//     Values that exported functions return are API too.
//   - The timer becomes an interface value in a call of another module's function, except
//     the standard library's and testify's.
//
// Uses that package timer's types do not allow, or handle differently:
//
//   - The timer is held or copied by value, or becomes an unsafe.Pointer.
//   - The program takes the len or cap of a channel that may be the timer's.
//   - Nothing stops the timer of a NewTimer or NewTicker.
//   - The timer is an argument of runtime.SetFinalizer.
//   - A struct embeds the timer and has another method Deadline, which the method Deadline
//     of timer.Timer would hide.
//   - The timer reaches a type switch that already has a case for package timer's type.
//   - The same type assertion may also return another timer, which is not rewritten.
//   - A package variable or sync.Pool holds the timer, and a test may use it in a
//     testing/synctest bubble. If it is reset there, a timer.Timer uses the bubble's clock,
//     and a time.Timer the system's.
//
// Reasons in files:
//
//   - The file is generated, uses cgo, or imports package time with a dot.
//   - The file's code looks for leaked goroutines, for example with package goleak.
//   - A file that the build excludes may use the timer by name.
//
// # Guarantees
//
// If the original packages compile, the rewritten ones do too. For this, all packages that
// use them must be analyzed together. A file that was formatted with gofmt still is.
//
// # Limits
//
// The analysis does not see reflection, assembly, or modules nested in this one, which may
// use its internal packages. Code that prints the name of a type prints the new name.
//
// # Complexity
//
// Almost linear in the size of the source.
package migrate
