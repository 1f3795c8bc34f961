// Package deadline provides contexts with a deadline that start no timer until they are
// waited for. It also provides Deadline, for types with methods such as
// SetReadDeadline.
//
// # Usage
//
//	ctx, cancel := deadline.WithTimeout(ctx, 30*time.Second)
//	defer cancel()
//
// # When not to use it
//
// This package is for contexts that are made often and seldom waited for. For example,
// a server gives each request a context, but answers most requests from memory.
//
// If a context is waited for, package context is better. Database calls, outgoing
// requests and every select on Done wait for their context. Then a context of this
// package costs up to 50% more than one of package context. Measure before you replace
// [context.WithTimeout].
//
// # Guarantees
//
// A context behaves like one of package context. Until it is waited for, it has no
// timer. Err reads the clock and calls the parent's Err. An unreferenced context is
// garbage, even if it was not cancelled.
//
// The first call of Done makes a context of package context, and all methods delegate
// to it from then on. A select calls Done. So do [context.AfterFunc] and functions such
// as [context.WithCancel], which derive a context. Repeated calls of Err have the same
// effect, so that a loop does not read the clock each time.
//
// There is one difference. Suppose that the parent was cancelled, and that the deadline
// passed, before any method was called. Their order is then unknown, and the context
// reports the parent's error and cause.
//
// The functions return a plain context of package context in three cases: if the
// deadline has passed, in a testing/synctest bubble, and for a parent that belongs
// neither to package context nor to this package.
//
// # Concurrency
//
// Any goroutine may call the methods of a context, its cancel function, and the methods
// of a Deadline. None of them starts a goroutine.
package deadline
