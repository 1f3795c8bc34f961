// Package deadline provides contexts with a deadline that cost no timer until they are
// waited for, and a Deadline for types that have methods such as SetReadDeadline.
//
// # When not to use it
//
// If a context is waited for, package context is better. The context of a request that
// reaches a database, another service or any select on Done starts a timer anyway, and
// then costs up to half as much again as one of package context. This package is for
// contexts that are made often and seldom waited for: most requests are answered from
// memory, and few handlers call more than Err. Measure before you replace
// [context.WithTimeout].
//
// # Usage
//
//	ctx, cancel := deadline.WithTimeout(ctx, 30*time.Second)
//	defer cancel()
//
// # Guarantees
//
// A context behaves like one of package context. The first call of Done makes it delegate
// to a context of package context. A select calls Done, and so do [context.AfterFunc] and
// the functions that derive a context with a cancel function. Until then Err reads the
// clock and calls the parent's Err, and an unreferenced context is garbage. Repeated
// calls of Err also make the context delegate, so that a loop does not read the clock
// each time.
//
// There is one difference. If the parent was cancelled and the deadline has passed before
// any method was called, the order of the two is unknown. The context then reports the
// parent's error and cause.
//
// Contexts follow package time's clock, also inside a testing/synctest bubble. The
// functions return a plain context of package context in three cases: in a bubble, for a
// parent that belongs neither to package context nor to this package, and if the deadline
// has passed.
//
// # Concurrency
//
// Any goroutine may call the methods of a context, its cancel function, and the methods
// of a Deadline. None of them starts a goroutine.
package deadline
