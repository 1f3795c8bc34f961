// Package deadline provides contexts with a deadline that start no timer until they are
// waited for. It also provides Deadline, for methods such as SetReadDeadline.
//
// # Usage
//
//	ctx, cancel := deadline.WithTimeout(ctx, 30*time.Second)
//	defer cancel()
//	c.readDeadline.Set(t) // a Deadline; Read selects on c.readDeadline.Done()
//
// # When not to use it
//
// Use this package for contexts that are seldom waited for. For example, a server gives
// each request a context, but answers most requests from memory.
//
// Database calls, outgoing requests and every select on Done wait for their context.
// Then a context of package context is better: one of this package costs 20 to 40% more.
// Measure before you replace [context.WithTimeout].
//
// # Guarantees
//
// A context behaves like one of package context, with one difference. If its parent is
// cancelled and its deadline passes before Done is called, without a call of Err in
// between, the context reports the parent's error and cause, whichever came first.
//
// A context has no timer until Done is called, or Err for the 16th time. A select calls
// Done. So do [context.AfterFunc], and functions that derive a context, such as
// [context.WithCancel].
//
// A context without a timer is garbage when it is no longer referenced, even if it was
// not cancelled.
//
// In a testing/synctest bubble, or if the parent is neither from package context nor from
// this package, the functions return a context of package context.
//
// # Concurrency
//
// Any goroutine may call any method and any cancel function. None of them starts a
// goroutine.
package deadline
