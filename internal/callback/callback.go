// Package callback has a type that only this module's packages can name: an option that
// takes one is for them alone.
package callback

// A Func is called back by one package of this module for another.
type Func func()
