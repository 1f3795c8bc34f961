// Package deadline has contexts with a deadline that cost no timer until somebody waits
// for them, and a Deadline for types that have methods such as SetReadDeadline.
//
// # When not to use it
//
// Where somebody waits, package context serves better. The context of a request that
// reaches a database, another service or any select on Done starts a timer all the same,
// and then costs up to half as much again as package context's. This package is for
// contexts that are made often and seldom waited for: most requests are answered from
// memory, and few handlers look further than Err. Measure before you replace
// [context.WithTimeout].
//
// # Usage
//
//	ctx, cancel := deadline.WithTimeout(ctx, 30*time.Second)
//	defer cancel()
//
// # Guarantees
//
// A context does what package context's does. The first call of Done turns it into one of
// package context's. A select calls Done, and so do [context.AfterFunc] and the functions
// that derive a context with a cancel function. Until then Err reads the clock and asks
// the parent's Err, and a context that nobody refers to is garbage. Some calls of Err turn
// it into one of package context's too, so that a loop does not read the clock each time.
//
// One thing differs. If the parent was cancelled and the deadline has passed before
// anybody looked, nobody knows which came first, and the parent's error and cause count.
//
// Contexts follow package time's clock, also inside a testing/synctest bubble. In three
// cases the functions return a context of package context's at once: in a bubble, below a
// parent that is neither of package context nor of this package, and if the deadline has
// passed.
//
// # Concurrency
//
// Any goroutine may call the methods of a context, its cancel function, and the methods
// of a Deadline. None of them costs a goroutine.
package deadline
