// Package callback has what one package of this module has another one call, and
// what is nobody else's business.
package callback

// OnCheck has a pool of package executor call f after each check of its watchdog, on
// the watchdog's goroutine and without a lock. It is to be called before the pool is
// used. Package executor sets it.
//
// The watchdog's goroutine and that of a scheduler's alarm compete for the place in
// front of a proc's run queue: if their timers go off together, the one that loses
// waits at the end. So each does what is left to do for the other.
var OnCheck func(pool any, f func())

// OnCrowd has a pool of package executor call f, on the watchdog's goroutine and without a
// lock, before it starts what its check has found that is needed: callbacks take long, and
// soon many goroutines may wait for a proc. It is to be called before the pool is used.
// Package executor sets it.
var OnCrowd func(pool any, f func())

// PrintPanic is the default panic handler of package executor, which sets it.
var PrintPanic func(v any, stack []byte)
