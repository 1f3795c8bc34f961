// Package migrate rewrites programs that use package time's timers or contexts with
// deadlines, so that they use packages timer and deadline. It works on types, not on text:
// a *time.Timer becomes a *timer.Timer only together with every variable, field and
// function that it flows through.
//
// # Usage
//
//	tickless migrate --diff ./...    # or --fix; the program is cmd/tickless
//
// It decides for each package alone. Package project does so for all packages of a module.
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
// The report gives the reasons for each call that is not rewritten:
//
//   - Another package may use the timer: an exported name has its type, or leads to it.
//   - The timer meets package time's type in code that does not change, as in a call of
//     another package's function.
//   - The timer becomes an interface value, except of an interface type that only the package
//     can name, in a sync.Pool of the package, or in a call that only prints.
//   - The timer is held or copied by value, or becomes an unsafe.Pointer.
//   - The package takes the len or cap of a channel that may be the timer's.
//   - Nothing stops the timer of a NewTimer or NewTicker.
//   - A struct embeds the timer: it would get the method Deadline of timer.Timer.
//   - The file is generated or uses cgo.
//   - The file is a test that counts goroutines.
//   - A file that the build excludes may use the timer by name.
//
// # Guarantees
//
// If the original package compiles, the rewritten one does too: the analysis type-checks it.
// A file that was formatted with gofmt still is.
//
// # Limits
//
// The analysis does not see reflection, assembly, or what a file imports with a dot. Code that
// prints the name of a type prints the new name.
//
// # Complexity
//
// A few type-checks of each package.
package migrate
